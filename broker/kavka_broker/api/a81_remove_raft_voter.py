"""RemoveRaftVoter (81): take a controller's vote away (KIP-853).

- One that does not vote with this directory is VOTER_NOT_FOUND; the last voter stays.
- A leader that removes itself goes on until that is committed, and resigns.
Versions: flexible from 0.
"""

from collections.abc import Awaitable

from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api


@api(RemoveRaftVoterRequest, RemoveRaftVoterResponse, versions=(0, 0), on=BOTH, forwarded=True)
def remove_raft_voter(
    request: RemoveRaftVoterRequest, broker: Broker, client: Client
) -> RemoveRaftVoterResponse | Awaitable[RemoveRaftVoterResponse]:
    answer: RemoveRaftVoterResponse | Awaitable[RemoveRaftVoterResponse] = broker.quorum.serve(request)
    return answer
