"""WriteTxnMarkers (27): a transaction's coordinator ends it in the partitions that this broker leads.

The coordinator is another broker of the cluster (or an administrator who aborts a hanging transaction).

- Each partition gets a COMMIT or ABORT marker, answered when every in-sync replica has it, or after
  `request.timeout.ms` with REQUEST_TIMED_OUT; a marker that is written twice ends nothing the second time.
- A marker below the producer's epoch is INVALID_PRODUCER_EPOCH. Transaction version 2 raises the epoch with each
  marker, so there the same epoch is refused too, unless nothing is open: then the marker is a repetition.
- One from a coordinator that another has replaced is TRANSACTION_COORDINATOR_FENCED.
- One in `__consumer_offsets` is answered when the groups have taken the offsets of the transaction over.
Versions: flexible; the transaction version from 2.
"""

from kavka_broker.core.audit.changes import transactions_ended
from kavka_broker.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from kavka_broker.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each


@api(
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    versions=(1, 2),
    each=(Each("markers.topics.partition_indexes", "markers.topics.partitions", per_turn=500),),
)
async def write_txn_markers(request: WriteTxnMarkersRequest, broker: Broker, client: Client) -> WriteTxnMarkersResponse:
    client.is_exempt = True
    results = await broker.markers.write(request.markers)
    if broker.audit is not None:
        for change in transactions_ended(request, results):
            broker.audit.changed(client.principal, client.address, client.client_id, change)
    return WriteTxnMarkersResponse(results)
