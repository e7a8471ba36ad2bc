"""EndTxn (26): commit a transaction, or abort it.

- Answered when the decision is in the coordinator's log, on every in-sync replica. The markers follow; until the last
  is written the producer's next transaction hears CONCURRENT_TRANSACTIONS.
- Version 5 is transaction version 2 (KIP-890): the decision raises the epoch, and the answer tells the producer the id
  and epoch of its next transaction. A request that comes twice is answered twice, and ends one transaction.
- Up to version 4, over a connection that the producer has given up for a later one: NOT_COORDINATOR, and the connection
  closes. It is the only sign that the request is of an earlier transaction, as all have one epoch.
Versions: flexible from 3, PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH from 2, TRANSACTION_ABORTABLE in 4.
"""

from kavka_broker.api.a22_init_producer_id import told_to
from kavka_broker.core.transaction.ending import End
from kavka_broker.core.transaction.state import BUMPS_FROM
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.end_txn_request import EndTxnRequest
from kavka_broker.protocol.messages.end_txn_response import EndTxnResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import NAMES_BYTES_MAX, api

FENCED_FROM_VERSION = 2
BUMPS_FROM_VERSION = 5


@api(EndTxnRequest, EndTxnResponse, versions=(0, 5), bytes_max=NAMES_BYTES_MAX)
async def end_txn(request: EndTxnRequest, broker: Broker, client: Client) -> EndTxnResponse:
    version = BUMPS_FROM if client.version >= BUMPS_FROM_VERSION else 0
    asked = End(request.producer_id, request.producer_epoch, request.committed, version)
    try:
        if not request.transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST)
        producer_id, epoch = await broker.transactions.end(request.transactional_id, asked, client.connection_number)
    except BrokerError as error:
        return EndTxnResponse(error_code=told_to(client, FENCED_FROM_VERSION, error))
    return EndTxnResponse(producer_id=producer_id, producer_epoch=epoch)
