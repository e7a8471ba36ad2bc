"""AddOffsetsToTxn (25): a transaction is about to commit offsets of a group.

It adds the group's partition of `__consumer_offsets`, as AddPartitionsToTxn adds others, and waits as that does for the
end of the last transaction. Clients of transaction version 2 leave that to the group's coordinator.
Versions: flexible from 3, PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH from 2.
"""

from kavka_broker.api.a22_init_producer_id import told_to
from kavka_broker.core.metadata.image.topic_names import OFFSETS_TOPIC
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kavka_broker.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import NAMES_BYTES_MAX, api

FENCED_FROM_VERSION = 2


@api(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, versions=(0, 4), bytes_max=NAMES_BYTES_MAX)
async def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, broker: Broker, client: Client
) -> AddOffsetsToTxnResponse:
    try:
        await add(request, broker, client)
    except BrokerError as error:
        return AddOffsetsToTxnResponse(error_code=told_to(client, FENCED_FROM_VERSION, error))
    return AddOffsetsToTxnResponse()


async def add(request: AddOffsetsToTxnRequest, broker: Broker, client: Client) -> None:
    """Raises BrokerError."""
    if not request.transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    if broker.groups.partition_of(request.group_id) is None:
        # Producers look for the group's coordinator behind this: nobody else would make the topic.
        await broker.groups.topic.create()
    index = broker.groups.partition_of(request.group_id)
    if index is None:
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC} does not exist yet")
    await broker.transactions.until_completed(request.transactional_id)
    producer = request.producer_id, request.producer_epoch
    places = [(OFFSETS_TOPIC, index)]
    await broker.transactions.add_partitions(request.transactional_id, producer, places, 0, client.connection_number)
