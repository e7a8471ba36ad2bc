"""BeginQuorumEpoch (53): a controller has won an election, and tells the voters that it leads.

- Sent until a voter fetches; a voter that hears of a newer epoch follows it.
- An older epoch than this voter's is FENCED_LEADER_EPOCH.
Versions: flexible from 1; directories and the leader's addresses from 1.
"""

from collections.abc import Awaitable

from kavka_broker.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kavka_broker.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.quorum_answers import fitting
from kavka_broker.request.registry import CONTROLLER, api

ADDRESSES_SINCE = 1


@api(BeginQuorumEpochRequest, BeginQuorumEpochResponse, versions=(0, 1), on=CONTROLLER)
def begin_quorum_epoch(
    request: BeginQuorumEpochRequest, broker: Broker, client: Client
) -> BeginQuorumEpochResponse | Awaitable[BeginQuorumEpochResponse]:
    answer: BeginQuorumEpochResponse | Awaitable[BeginQuorumEpochResponse] = broker.quorum.serve(request)
    return fitting(answer, client.version, ADDRESSES_SINCE)
