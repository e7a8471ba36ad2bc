"""Reading a partition of `__consumer_offsets` when this broker becomes its leader.

The log is read in slices, and the loop gets its turn after each, so a long load holds up nobody else; meanwhile the
partition's groups are answered COORDINATOR_LOAD_IN_PROGRESS. Offsets that a transaction committed (by Apache Kafka,
before this broker took over) count when its marker says so. Keys of features that this release does not know are
passed over; a value that it cannot read stops the load, because serving half of what is known would lose the rest.
"""

import asyncio
from struct import error, unpack_from

from kavka_broker.core.group.image import GroupImage
from kavka_broker.protocol.coordinator_records import Coordinator, record_classes, unframe
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.records.batch import BatchHeader, split_batches
from kavka_broker.protocol.records.control import ControlType, read_marker
from kavka_broker.protocol.records.record import Record, read_records
from kavka_broker.replica.partition import Partition

SLICE_BYTES_MAX = 128 * 1024
"""Decodes in a few milliseconds."""


class Replayer:
    """Turns batches into what they say of groups. `passed_over` counts records of unknown kinds."""

    def __init__(self, image: GroupImage) -> None:
        self._image = image
        self._open: dict[int, list[tuple[Message, Message | None]]] = {}  # by producer id: a transaction's offsets
        self.records = 0
        self.passed_over = 0

    def batch(self, header: BatchHeader, batch: memoryview) -> None:
        if header.is_control:
            self._marker(header, batch)
            return
        for record in read_records(batch):
            self.records += 1
            decoded = self._decode(record)
            if decoded is None:
                self.passed_over += 1
            elif header.is_transactional:
                self._open.setdefault(header.producer_id, []).append(decoded)
            else:
                self._image.replay(*decoded)

    def _marker(self, header: BatchHeader, batch: memoryview) -> None:
        marker = read_marker(batch)
        if marker is None:
            return
        waiting = self._open.pop(header.producer_id, [])
        if marker.kind is ControlType.COMMIT:
            for key, value in waiting:
                self._image.replay(key, value)

    def _decode(self, record: Record) -> tuple[Message, Message | None] | None:
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


async def load(partition: Partition, image: GroupImage) -> Replayer:
    """Replay the log from its start to where it ends now."""
    log = partition.log
    replayer = Replayer(image)
    offset, end_offset = log.log_start_offset, log.log_end_offset
    while offset < end_offset:
        chunk = log.read(offset, SLICE_BYTES_MAX, upper_offset=end_offset, at_least_one=True)
        before = offset
        for part in chunk.parts:
            for header, batch in split_batches(part):
                replayer.batch(header, batch)
                offset = header.next_offset
        if offset == before:  # the rest has been compacted away
            break
        await asyncio.sleep(0)
    image.finish_loading()
    return replayer
