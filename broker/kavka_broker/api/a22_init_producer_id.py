"""InitProducerId (22): an id and an epoch for a producer that must not write anything twice.

- Without a transactional id: the next id of this broker's block, with epoch 0. An id and epoch that the producer had
  before do not count; it wants new ones because it gave the old ones up.
- With a transactional id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which all clients take as final. This broker
  coordinates no transactions, and an error that asks to try again would keep the producer waiting forever.
- An empty transactional id, and an id without an epoch or the other way round, is INVALID_REQUEST, as in Apache Kafka.
Versions: flexible from 2; 6 is unstable in Kafka 4.3 and not served.
"""

from collections.abc import Awaitable

from kavka_broker.core.told_once import shortened
from kavka_broker.logs import get
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api

log = get("api")

NONE = -1


@api(InitProducerIdRequest, InitProducerIdResponse, versions=(0, 5))
def init_producer_id(
    request: InitProducerIdRequest, broker: Broker, client: Client
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    if request.transactional_id == "":
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NONE)
    if request.transactional_id is not None:
        tell_unserved(request.transactional_id, broker, client)
        return InitProducerIdResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, producer_epoch=NONE)
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NONE)
    producer_id = broker.producer_ids.next_at_hand()
    if producer_id is None:
        return from_new_block(broker)
    return InitProducerIdResponse(producer_id=producer_id)


def tell_unserved(transactional_id: str, broker: Broker, client: Client) -> None:
    """Log that a client asks for transactions, once an hour for each id."""
    if broker.told_once.is_new(
        broker.clock.monotonic_ms(), "transactions.unserved", transactional_id, client.client_id
    ):
        log.warning(
            "transactions.unserved",
            transactional_id=shortened(transactional_id),
            client_id=shortened(client.client_id),
            client=client.address,
        )


async def from_new_block(broker: Broker) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=await broker.producer_ids.next())
