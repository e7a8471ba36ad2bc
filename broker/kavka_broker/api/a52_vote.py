"""Vote (52): a candidate for the lead of the controllers asks for this one's vote.

- Given once an epoch, to a candidate whose log is at least as new; on disk before the answer leaves.
- A pre-vote (KIP-996) promises nothing and writes nothing: would a vote be given? Not while the leader is heard of.
- Another cluster's id is INCONSISTENT_CLUSTER_ID; a directory that this voter no longer has is INVALID_VOTER_KEY.
Versions: flexible from 0; directories from 1; pre-vote from 2.
"""

from collections.abc import Awaitable

from kavka_broker.protocol.messages.vote_request import VoteRequest
from kavka_broker.protocol.messages.vote_response import VoteResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.quorum_answers import fitting
from kavka_broker.request.registry import CONTROLLER, api

ADDRESSES_SINCE = 1


@api(VoteRequest, VoteResponse, versions=(0, 2), on=CONTROLLER)
def vote(request: VoteRequest, broker: Broker, client: Client) -> VoteResponse | Awaitable[VoteResponse]:
    answer: VoteResponse | Awaitable[VoteResponse] = broker.quorum.serve(request)
    return fitting(answer, client.version, ADDRESSES_SINCE)
