"""AllocateProducerIds (67): the next block of producer ids, for one broker.

- STALE_BROKER_EPOCH for an incarnation that was replaced. A block that was given is never given again.
Versions: flexible throughout.
"""

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.producer_ids import Block, allocate
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kavka_broker.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import CONTROLLER, api


@api(AllocateProducerIdsRequest, AllocateProducerIdsResponse, versions=(0, 0), on=CONTROLLER)
async def allocate_producer_ids(
    request: AllocateProducerIdsRequest, broker: Broker, client: Client
) -> AllocateProducerIdsResponse:
    del client

    def decide(metadata: Metadata, _: int) -> Decision[Block]:
        metadata.brokers.at_epoch(request.broker_id, request.broker_epoch)
        return allocate(metadata.producer_ids, request.broker_id, request.broker_epoch)

    block = await broker.active.submit(decide)
    return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.size)
