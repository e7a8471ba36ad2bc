"""WriteTxnMarkers (27): a transaction's coordinator ends it in the partitions that this broker leads.

The coordinator is an Apache Kafka broker of the same cluster (or an administrator who aborts a hanging transaction).
What it has decided is final, so a marker is refused for good only where it is outdated; every other error asks to try
again, and is one of those that Kafka's coordinator knows as such.

- Each partition gets a COMMIT or ABORT marker, answered when every in-sync replica has it, or after
  `request.timeout.ms` with REQUEST_TIMED_OUT; a marker that is written twice ends nothing the second time.
- A marker below the producer's epoch is INVALID_PRODUCER_EPOCH. Transaction version 2 raises the epoch with each
  marker, so there the same epoch is refused too, unless nothing is open: then the marker is a repetition.
- One from a coordinator that another has replaced is TRANSACTION_COORDINATOR_FENCED.
- A COMMIT in `__consumer_offsets` makes offsets count that the groups' state does not have yet: it is read again.
Versions: flexible; the transaction version from 2.
"""

import asyncio
from typing import NamedTuple

from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from kavka_broker.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.each import Each
from kavka_broker.request.registry import api
from kavka_broker.storage.log import Origin

log = get("api")

EPOCHS_RISE_FROM = 2  # the transaction version


class Waiting(NamedTuple):
    """A marker that is appended, but not on every in-sync replica yet."""

    result: WritableTxnMarkerPartitionResult
    committed: asyncio.Future[None]


@api(
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    versions=(1, 2),
    each=(Each("markers.topics.partition_indexes", "markers.topics.partitions", per_turn=50),),
)
async def write_txn_markers(request: WriteTxnMarkersRequest, broker: Broker, client: Client) -> WriteTxnMarkersResponse:
    client.is_exempt = True
    waiting: list[Waiting] = []
    results = [
        WritableTxnMarkerResult(
            marker.producer_id,
            [
                WritableTxnMarkerTopicResult(
                    topic.name, [write(topic.name, index, marker, broker, waiting) for index in topic.partition_indexes]
                )
                for topic in marker.topics
            ],
        )
        for marker in request.markers
    ]
    await until_committed(waiting, broker.config["request.timeout.ms"])
    return WriteTxnMarkersResponse(results)


def write(
    topic: str, index: int, marker: WritableTxnMarker, broker: Broker, waiting: list[Waiting]
) -> WritableTxnMarkerPartitionResult:
    """Append the marker to one partition; if it is not committed yet, it is added to `waiting`."""
    result = WritableTxnMarkerPartitionResult(index)
    try:
        committed = append(topic, index, marker, broker)
    except BrokerError as error:
        log.warning("marker.refused", partition=f"{topic}-{index}", producer_id=marker.producer_id, reason=str(error))
        result.error_code = error.code
    else:
        if committed is not None:
            waiting.append(Waiting(result, committed))
    return result


def append(topic: str, index: int, marker: WritableTxnMarker, broker: Broker) -> asyncio.Future[None] | None:
    """Append the marker; returns a future if it has to be replicated. Raises BrokerError if it is refused."""
    partition = broker.replicas.leader(topic, index)
    producers, producer_id = partition.log.producers, marker.producer_id
    producers.check_marker(
        producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        epochs_rise=marker.transaction_version >= EPOCHS_RISE_FROM,
    )
    is_open = producers.transactions.is_open(producer_id)
    batch = build_marker(
        ControlType.COMMIT if marker.transaction_result else ControlType.ABORT,
        producer_id=producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        timestamp_ms=broker.clock.now_ms(),
    )
    appended = partition.append(memoryview(batch), origin=Origin.COORDINATOR)
    if is_open and marker.transaction_result:
        broker.groups.transaction_committed(partition)
    return partition.when_committed(appended.last_offset)


async def until_committed(waiting: list[Waiting], timeout_ms: int) -> None:
    """Wait for the in-sync replicas, and put the error of each marker into its answer."""
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    for result, committed in waiting:
        try:
            async with asyncio.timeout_at(deadline):
                await committed
        except TimeoutError:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
        except BrokerError as error:
            result.error_code = error.code
