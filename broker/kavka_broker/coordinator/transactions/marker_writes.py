"""The markers that end transactions in the partitions that this broker leads.

What a coordinator has decided is final, so a marker is refused for good only where it is outdated; every other error
asks to try again. A marker in `__consumer_offsets` also decides about the offsets that the transaction has committed:
it counts as written when the groups have taken them over (KAFKA-17507).
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.coordinator.groups.transactional_offsets import Committed
from kavka_broker.core.metadata.image.topic_names import OFFSETS_TOPIC
from kavka_broker.core.transaction.state import BUMPS_FROM
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.write_txn_markers_request import WritableTxnMarker
from kavka_broker.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
)
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.replica.hosting.hosted_partitions import HostedPartitions
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.storage.log import Origin

log = get("coordinator")

PER_TURN_MAX: Final = 10
"""Markers that are appended in one turn of the loop."""


class GroupsOfPartitions(Protocol):
    """The groups, as far as markers concern them."""

    def open_shard(self, partition: Partition) -> Shard:
        """Return the groups of a partition. Raises BrokerError where they are being read."""


class Waiting(NamedTuple):
    """A marker that is appended, but not on every in-sync replica yet."""

    result: WritableTxnMarkerPartitionResult
    committed: asyncio.Future[None]


class MarkerWrites:
    """Writes markers, for the coordinator on this broker and for those on others."""

    def __init__(self, partitions: HostedPartitions, groups: GroupsOfPartitions, clock: Clock, timeout_ms: int) -> None:
        self._partitions = partitions
        self._groups = groups
        self._clock = clock
        self._timeout_ms = timeout_ms

    async def write(self, markers: Sequence[WritableTxnMarker]) -> list[WritableTxnMarkerResult]:
        """Append the markers in slices; returns when every in-sync replica has them, or it has taken too long."""
        waiting: list[Waiting] = []
        results = []
        count = 0
        for marker in markers:
            result = WritableTxnMarkerResult(marker.producer_id)
            for topic in marker.topics:
                answered = WritableTxnMarkerTopicResult(topic.name)
                for index in topic.partition_indexes:
                    answered.partitions.append(self._append(topic.name, index, marker, waiting))
                    count += 1
                    if count % PER_TURN_MAX == 0:
                        await asyncio.sleep(0)
                result.topics.append(answered)
            results.append(result)
        await self._until_committed(waiting)
        return results

    def _append(
        self, topic: str, index: int, marker: WritableTxnMarker, waiting: list[Waiting]
    ) -> WritableTxnMarkerPartitionResult:
        """Append the marker to one partition; if it is not committed yet, it is added to `waiting`."""
        result = WritableTxnMarkerPartitionResult(index)
        try:
            committed = self._appended(topic, index, marker)
        except BrokerError as error:
            log.warning(
                "marker.refused", partition=f"{topic}-{index}", producer_id=marker.producer_id, reason=str(error)
            )
            result.error_code = error.code
        else:
            if committed is not None:
                waiting.append(Waiting(result, committed))
        return result

    def _appended(self, topic: str, index: int, marker: WritableTxnMarker) -> Committed:
        """Append the marker; returns a future if it has to be replicated. Raises BrokerError if it is refused."""
        partition = self._partitions.leader(topic, index)
        shard = self._groups.open_shard(partition) if topic == OFFSETS_TOPIC else None
        producer_id = marker.producer_id
        partition.log.producers.check_marker(
            producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            epochs_rise=marker.transaction_version >= BUMPS_FROM,
        )
        batch = build_marker(
            ControlType.COMMIT if marker.transaction_result else ControlType.ABORT,
            producer_id=producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp_ms=self._clock.now_ms(),
        )
        appended = partition.append(memoryview(batch), origin=Origin.COORDINATOR)
        committed = partition.when_committed(appended.last_offset)
        if shard is None:
            return committed
        return shard.staging.end_transaction(producer_id, committed, commits=marker.transaction_result)

    async def _until_committed(self, waiting: list[Waiting]) -> None:
        """Wait for the in-sync replicas, and put the error of each marker into its answer."""
        deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
        for result, committed in waiting:
            try:
                async with asyncio.timeout_at(deadline):
                    await committed
            except TimeoutError:
                result.error_code = ErrorCode.REQUEST_TIMED_OUT
            except BrokerError as error:
                result.error_code = error.code
