"""UpdateRaftVoter (82): a voter has moved, or speaks other versions, and says so to the leader (KIP-853).

- Sent by the voters themselves when what the log says of them is not what they are.
Versions: flexible from 0.
"""

from collections.abc import Awaitable

from kavka_broker.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kavka_broker.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import CONTROLLER, SMALL_BYTES_MAX, api


@api(UpdateRaftVoterRequest, UpdateRaftVoterResponse, versions=(0, 0), on=CONTROLLER, bytes_max=SMALL_BYTES_MAX)
def update_raft_voter(
    request: UpdateRaftVoterRequest, broker: Broker, client: Client
) -> UpdateRaftVoterResponse | Awaitable[UpdateRaftVoterResponse]:
    answer: UpdateRaftVoterResponse | Awaitable[UpdateRaftVoterResponse] = broker.quorum.serve(request)
    return answer
