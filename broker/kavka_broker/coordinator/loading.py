"""Reading a partition of `__consumer_offsets` when this broker becomes its leader.

The log is read in slices, and the loop gets its turn after each, so a long load holds up nobody else; meanwhile the
partition's groups are answered COORDINATOR_LOAD_IN_PROGRESS. What a group is depends on the last record of each key and
on nothing before it, so only those are decoded: most of an offsets log is commits that later ones replaced.

Offsets that a transaction committed (by Apache Kafka, before this broker took over) count when its marker says so.
Keys of features that this release does not know are passed over; a value that it cannot read stops the load, because
serving half of what is known would lose the rest.
"""

import asyncio
from dataclasses import dataclass
from struct import error, unpack_from

from kavka_broker.coordinator.led_partition import LoadablePartition
from kavka_broker.core.group.image import GroupImage
from kavka_broker.protocol.coordinator_records import Coordinator, record_classes, unframe
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.records.batch import BatchHeader, split_batches
from kavka_broker.protocol.records.control import ControlType, read_marker
from kavka_broker.protocol.records.record import Record, read_records

SLICE_BYTES_MAX = 64 * 1024
DECODED_PER_SLICE_MAX = 500
FINISHED_PER_SLICE_MAX = 5_000
"""Slices of this size take a few milliseconds."""


class Latest:
    """The last record of each key, taken batch by batch. `records` counts all records."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, Record] = {}
        self.records = 0
        self._open: dict[int, list[Record]] = {}  # records of open transactions, by producer id

    def batch(self, header: BatchHeader, batch: memoryview) -> None:
        if header.is_control:
            self._end(header, batch)
            return
        records = read_records(batch)
        self.records += len(records)
        if header.is_transactional:
            self._open.setdefault(header.producer_id, []).extend(records)
        else:
            self._keep(records)

    def _end(self, header: BatchHeader, batch: memoryview) -> None:
        marker = read_marker(batch)
        if marker is not None:
            records = self._open.pop(header.producer_id, [])
            if marker.kind is ControlType.COMMIT:
                self._keep(records)

    def _keep(self, records: list[Record]) -> None:
        for record in records:
            self.by_key[record.key or b""] = record


@dataclass(frozen=True, slots=True)
class Loaded:
    """The figures of a load, for its log line."""

    records: int
    passed_over: int  # records whose keys are of unknown kinds


async def load(partition: LoadablePartition, image: GroupImage) -> Loaded:
    """Replay the log from its start to its present end. Raises BrokerError and ProtocolViolation."""
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
                latest.batch(header, batch)
                offset = header.next_offset
        if offset == before:  # the remaining offsets have been compacted away
            break
        await asyncio.sleep(0)
    return latest


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
