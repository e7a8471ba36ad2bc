"""What the log has for a share partition: batches, and which of them no member is to get."""

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple

from kavka_broker.core.share.share_partition import Acquired, LogBatch
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.records.batch import BatchHeader, TimestampType, split_batches
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.serving.txn_index_check import is_proven
from kavka_broker.storage.transaction_index import AbortedTransaction

BATCHES_PER_READ_MAX: Final = 250
"""Batches of the log that are looked at in one turn: a few milliseconds."""
READ_BYTES_MAX: Final = 8 * 1024 * 1024


class FoundBatches(NamedTuple):
    """Batches of the log, and their bytes."""

    batches: list[LogBatch]
    views: list[memoryview]

    def holding(self, acquired: Sequence[Acquired]) -> list[memoryview]:
        """Return the bytes of the batches that hold acquired records."""
        parts: list[memoryview] = []
        index = 0
        for batch, view in zip(self.batches, self.views, strict=True):
            while index < len(acquired) and acquired[index].last_offset < batch.first_offset:
                index += 1
            if index == len(acquired):
                break
            if acquired[index].first_offset <= batch.last_offset:
                parts.append(view)
        return parts


def readable_end(partition: Partition, is_committed_only: bool) -> int:
    """Return the offset where a group stops reading for now."""
    return partition.last_stable_offset if is_committed_only else partition.high_watermark


def oldest_ms(partition: Partition, offset: int) -> int | None:
    """Return the timestamp of the record at an offset, or of the first one of its batch; None where it is not there."""
    upper_offset = partition.high_watermark
    try:
        chunk = partition.log.read(offset, 1, upper_offset=upper_offset, at_least_one=True)
    except BrokerError:
        return None  # fetches find it out, and act on it
    header = next((header for part in chunk.parts for header, _ in split_batches(part)), None)
    if header is None:
        return None
    if header.has_delete_horizon or header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return header.max_timestamp
    return header.base_timestamp


def read_batches(
    partition: Partition, offset: int, bytes_max: int, at_least_one: bool, *, is_committed_only: bool
) -> FoundBatches | None:
    """Return the batches from `offset` on; None where there is nothing to read now. Raises BrokerError."""
    upper_offset = readable_end(partition, is_committed_only)
    if offset >= upper_offset or (is_committed_only and not is_proven(partition, offset)):
        return None
    chunk = partition.read(offset, min(bytes_max, READ_BYTES_MAX), upper_offset, at_least_one)
    split = chain.from_iterable(map(split_batches, chunk.parts))
    headers: list[BatchHeader] = []
    found = FoundBatches([], [])
    for header, view in islice(split, BATCHES_PER_READ_MAX):
        headers.append(header)
        found.views.append(view)
    aborted: dict[int, list[AbortedTransaction]] = {}
    if is_committed_only and headers:
        for entry in partition.log.reader.aborted_between(offset, headers[-1].next_offset):
            aborted.setdefault(entry.producer_id, []).append(entry)
    for header in headers:
        # Markers are delivered, as by Apache Kafka: clients acknowledge them as gaps, and tell applications so.
        is_hidden = not header.is_control and _is_aborted(header, aborted.get(header.producer_id, ()))
        found.batches.append(LogBatch(header.base_offset, header.last_offset, is_hidden))
    return found


def _is_aborted(header: BatchHeader, aborted: Iterable[AbortedTransaction]) -> bool:
    """Whether a batch is of one of these transactions of its producer."""
    return header.is_transactional and any(
        entry.first_offset <= header.base_offset <= entry.last_offset for entry in aborted
    )
