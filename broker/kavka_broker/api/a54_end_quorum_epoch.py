"""EndQuorumEpoch (54): the leader of the controllers resigns, and names who should stand for election first.

- The first of them stands at once, the others a little later each, so that mostly one election is enough.
Versions: flexible from 1; directories and the leader's addresses from 1.
"""

from collections.abc import Awaitable

from kavka_broker.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kavka_broker.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.quorum_answers import fitting
from kavka_broker.request.registry import CONTROLLER, api

ADDRESSES_SINCE = 1


@api(EndQuorumEpochRequest, EndQuorumEpochResponse, versions=(0, 1), on=CONTROLLER)
def end_quorum_epoch(
    request: EndQuorumEpochRequest, broker: Broker, client: Client
) -> EndQuorumEpochResponse | Awaitable[EndQuorumEpochResponse]:
    answer: EndQuorumEpochResponse | Awaitable[EndQuorumEpochResponse] = broker.quorum.serve(request)
    return fitting(answer, client.version, ADDRESSES_SINCE)
