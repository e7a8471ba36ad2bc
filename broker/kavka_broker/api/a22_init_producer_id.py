"""InitProducerId (22): an id and an epoch for a producer that must not write anything twice.

- Without a transactional id: the next id of this broker's block, with epoch 0. An id and epoch that the producer had
  before do not count; it wants new ones because it gave the old ones up.
- With a transactional id: the coordinator fences whoever had it before, and ends what they have begun. While that takes
  its time: CONCURRENT_TRANSACTIONS. An id and epoch tell it that the same producer goes on (KIP-360).
- An id that finds no room among the 100,000 and the 64 MiB of its partition is POLICY_VIOLATION.
- A producer whose transactions another system ends (KIP-939) has no timeout. Where
  `transaction.two.phase.commit.enable` is off it is refused as one without the right. To keep a transaction that is
  open is UNSUPPORTED_VERSION, as in 4.3.
- An empty transactional id, and an id without an epoch or the other way round, is INVALID_REQUEST, as in Apache Kafka.
Versions: flexible from 2, PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH from 4; 6 has KIP-939, and is
unstable in Kafka 4.3: `unstable.api.versions.enable` switches it on.
"""

from collections.abc import Awaitable

from kavka_broker.coordinator.transactions.late_requests import LateRequestError
from kavka_broker.coordinator.transactions.transaction_coordinator import FencedError
from kavka_broker.core.audit.changes import transaction_aborted
from kavka_broker.core.transaction.producers import Init
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api

NONE = -1
FENCED_FROM_VERSION = 4


@api(InitProducerIdRequest, InitProducerIdResponse, versions=(0, 5), unstable=6)
def init_producer_id(
    request: InitProducerIdRequest, broker: Broker, client: Client
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    is_torn = (request.producer_id == NONE) != (request.producer_epoch == NONE)
    if request.transactional_id == "" or is_torn:
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NONE)
    if request.transactional_id is not None:
        return initialize(request, request.transactional_id, broker, client)
    producer_id = broker.producer_ids.next_at_hand()
    if producer_id is None:
        return from_new_block(broker)
    return InitProducerIdResponse(producer_id=producer_id)


async def from_new_block(broker: Broker) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=await broker.producer_ids.next())


async def initialize(
    request: InitProducerIdRequest, transactional_id: str, broker: Broker, client: Client
) -> InitProducerIdResponse:
    expected = None if request.producer_id == NONE else (request.producer_id, request.producer_epoch)
    init = Init(
        request.transaction_timeout_ms,
        expected,
        is_two_phase=request.enable2_pc,
        keeps_prepared=request.keep_prepared_txn,
    )
    try:
        producer_id, epoch = await broker.transactions.initialize(transactional_id, init)
    except BrokerError as error:
        if isinstance(error, FencedError) and broker.audit is not None:
            change = transaction_aborted(transactional_id, "fenced")
            broker.audit.changed(client.principal, client.address, client.client_id, change)
        code = told_to(client, FENCED_FROM_VERSION, error)
        return InitProducerIdResponse(error_code=code, producer_epoch=NONE)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)


def told_to(client: Client, fenced_from: int, error: BrokerError) -> ErrorCode:
    """The error's code in this version: before KIP-588 clients do not know PRODUCER_FENCED. The connection of a late
    request closes.
    """
    if isinstance(error, LateRequestError):
        client.is_last = error.reason
    if error.code is ErrorCode.PRODUCER_FENCED and client.version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error.code
