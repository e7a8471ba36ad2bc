"""Reading a partition of `__consumer_offsets` when this broker becomes its leader.

The log is read in slices, and the loop gets its turn after each, so a long load holds up nobody else; meanwhile the
partition's groups are answered COORDINATOR_LOAD_IN_PROGRESS. What a group is depends on the last record of each key and
on nothing before it, so only those are decoded: most of an offsets log is commits that later ones replaced.

Offsets that a transaction committed count when its marker says so, and in their place in the log. Those of transactions
that are open at its end are staged (`core.group.staged`).
Keys of features that this release does not know are passed over; a value that it cannot read stops the load, because
serving half of what is known would lose the rest.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from struct import error, unpack_from

from kavka_broker.coordinator.led_partition import LoadablePartition
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.transactional_offsets import StagedOffset
from kavka_broker.protocol.coordinator_records import Coordinator, record_classes, unframe
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue
from kavka_broker.protocol.records.batch import BatchHeader, split_batches
from kavka_broker.protocol.records.control import ControlType, read_marker
from kavka_broker.protocol.records.record import Record, read_records

SLICE_BYTES_MAX = 64 * 1024
DECODED_PER_SLICE_MAX = 500
FINISHED_PER_SLICE_MAX = 5_000
KEPT_PER_SLICE_MAX = 5_000
"""Slices of this size take a few milliseconds."""


class Latest:
    """The last record of each key, taken batch by batch. `records` counts all records."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, Record] = {}
        self.records = 0
        self.open: dict[int, list[Record]] = {}  # records of open transactions, by producer id

    def batch(self, header: BatchHeader, batch: memoryview) -> Iterator[None]:
        """Take a batch. A marker decides about all records of its transaction, a slice a step."""
        if header.is_control:
            yield from self._end(header, batch)
            return
        records = read_records(batch)
        self.records += len(records)
        if header.is_transactional:
            self.open.setdefault(header.producer_id, []).extend(records)
        else:
            self._keep(records)

    def _end(self, header: BatchHeader, batch: memoryview) -> Iterator[None]:
        marker = read_marker(batch)
        if marker is None:
            return
        records = self.open.pop(header.producer_id, [])
        if marker.kind is not ControlType.COMMIT:
            return
        for start in range(0, len(records), KEPT_PER_SLICE_MAX):
            if start:
                yield
            self._keep(records[start : start + KEPT_PER_SLICE_MAX])

    def staged(self) -> Iterator[tuple[int, Record] | None]:
        """Records of open transactions, each with its producer id; None for one that does not count any more, if its
        transaction is committed.
        """
        for producer_id, records in self.open.items():
            for record in records:
                known = self.by_key.get(record.key or b"")
                yield (producer_id, record) if known is None or known.offset < record.offset else None

    def _keep(self, records: list[Record]) -> None:
        for record in records:
            key = record.key or b""
            known = self.by_key.get(key)
            if known is None or known.offset < record.offset:
                self.by_key[key] = record


@dataclass(frozen=True, slots=True)
class Loaded:
    """The figures of a load, for its log line."""

    records: int
    passed_over: int  # records whose keys are of unknown kinds


async def load(partition: LoadablePartition, image: GroupImage, removals: int = 0) -> Loaded:
    """Replay the log from its start to its present end. `removals` is the number of topic deletions that are known.

    Raises BrokerError and ProtocolViolation.
    """
    latest = await read(partition)
    passed_over = 0
    for number, record in enumerate(latest.by_key.values(), 1):
        decoded = decode(record)
        if decoded is None:
            passed_over += 1
        else:
            image.replay(*decoded)
        if number % DECODED_PER_SLICE_MAX == 0:
            await asyncio.sleep(0)
    for number, staged in enumerate(latest.staged(), 1):
        if staged is not None:
            stage(image, *staged, removals)
        if number % DECODED_PER_SLICE_MAX == 0:
            await asyncio.sleep(0)
    for number, _ in enumerate(image.finish_loading(), 1):
        if number % FINISHED_PER_SLICE_MAX == 0:
            await asyncio.sleep(0)
    return Loaded(latest.records, passed_over)


async def read(partition: LoadablePartition) -> Latest:
    log, latest = partition.log, Latest()
    offset, end_offset = log.log_start_offset, log.log_end_offset
    while offset < end_offset:
        # Partition.read, unlike Log.read, also reports a batch that the disk has changed.
        chunk = partition.read(offset, SLICE_BYTES_MAX, end_offset, at_least_one=True)
        before = offset
        for part in chunk.parts:
            for header, batch in split_batches(part):
                for _ in latest.batch(header, batch):
                    await asyncio.sleep(0)
                offset = header.next_offset
        if offset == before:  # the remaining offsets have been compacted away
            break
        await asyncio.sleep(0)
    return latest


def stage(image: GroupImage, producer_id: int, record: Record, removals: int) -> None:
    """Stage an offset of an open transaction. Raises ProtocolViolation."""
    decoded = decode(record)
    if decoded is None:
        return
    key, value = decoded
    if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
        image.stage(producer_id, StagedOffset(key, value, record.offset, removals))


def decode(record: Record) -> tuple[Message, Message | None] | None:
    """A record's key and value, or None for an unknown kind of record. Raises ProtocolViolation."""
    try:
        (number,) = unpack_from(">h", record.key or b"")
    except error:
        return None
    if record_classes(Coordinator.GROUP, number) is None:
        return None
    try:
        return unframe(record.key or b"", record.value)
    except ProtocolViolation as problem:
        raise ProtocolViolation(f"offset {record.offset}: {problem}") from None
