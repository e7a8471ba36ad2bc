"""AddRaftVoter (80): give a controller that observes a vote (KIP-853).

- One change at a time (REQUEST_TIMED_OUT while another is under way), and only once the new voter has caught up.
- A node id that votes already is DUPLICATE_VOTER; kraft.version 0 knows no such change: UNSUPPORTED_VERSION.
Versions: flexible from 0; from 1 it may be answered before the change is committed.
"""

from collections.abc import Awaitable

from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, SMALL_BYTES_MAX, api


@api(AddRaftVoterRequest, AddRaftVoterResponse, versions=(0, 1), on=BOTH, forwarded=True, bytes_max=SMALL_BYTES_MAX)
def add_raft_voter(
    request: AddRaftVoterRequest, broker: Broker, client: Client
) -> AddRaftVoterResponse | Awaitable[AddRaftVoterResponse]:
    answer: AddRaftVoterResponse | Awaitable[AddRaftVoterResponse] = broker.quorum.serve(request)
    return answer
