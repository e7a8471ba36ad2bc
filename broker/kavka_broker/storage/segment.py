"""One stretch of a log: a file of batches, and two sparse indexes over it.

Everything here works on whole batches and their headers; no record is ever looked at but by the search for a time.
The last segment of a log is its active one, the only one that grows.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import (
    HEADER,
    HEADER_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    BatchHeader,
    Buffer,
    crc_is_valid,
    read_extent,
    split_batches,
)
from kavka_broker.protocol.records.record import read_records
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.names import (
    LOG,
    OFFSET_INDEX,
    SEGMENT_FILES,
    TIME_INDEX,
    TRANSACTION_INDEX,
    offset_file,
)
from kavka_broker.storage.offset_index import OffsetIndex
from kavka_broker.storage.time_index import TimeIndex, TimestampOffset
from kavka_broker.storage.transaction_index import TransactionIndex

# An index holds offsets relative to the segment's first as int32.
OFFSETS_MAX = 2**31 - 1


class Place(NamedTuple):
    """A batch in a segment."""

    position: int
    base_offset: int
    last_offset: int
    size_bytes: int


class Found(NamedTuple):
    """A record found by time."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class Segment:
    """The batches from `base_offset` up to the next segment's."""

    __slots__ = (
        "_disk",
        "_unindexed_bytes",
        "aborted",
        "base_offset",
        "created_ms",
        "directory",
        "file",
        "first_timestamp_ms",
        "index_interval_bytes",
        "is_index_full",
        "largest",
        "offset_max",
        "offsets",
        "times",
        "unchecked_end",
        "unchecked_start",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        now_ms: int,
        *,
        index_interval_bytes: int = 4096,
        index_bytes_max: int = 10 * 1024 * 1024,
    ) -> None:
        path = os.path.join(directory, offset_file(base_offset, ""))
        self._disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.offset_max = base_offset + OFFSETS_MAX
        self.created_ms = now_ms
        self.index_interval_bytes = index_interval_bytes
        self.file = disk.open(path + LOG)
        self.offsets = OffsetIndex(disk, path + OFFSET_INDEX, base_offset, index_bytes_max)
        self.times = TimeIndex(disk, path + TIME_INDEX, base_offset, index_bytes_max)
        self.aborted = TransactionIndex(disk, path + TRANSACTION_INDEX)
        self.is_index_full = False
        self.first_timestamp_ms = NO_TIMESTAMP
        self.largest = self.times.last_entry() or TimestampOffset(NO_TIMESTAMP, base_offset)
        self._unindexed_bytes = 0
        # Positions between which no batch's CRC was looked at by this process: what it found when it started cleanly.
        self.unchecked_start, self.unchecked_end = 0, self.file.size

    @property
    def size_bytes(self) -> int:
        return self.file.size

    # --- writing ------------------------------------------------------------------------------------------------

    def append(self, batch: Buffer, last_offset: int, max_timestamp_ms: int) -> None:
        """Write one batch. Raises OSError, and then nothing has changed."""
        position = self.file.size
        self.file.append(batch)
        if not position:
            self.first_timestamp_ms = max_timestamp_ms
        self.note(position, len(batch), last_offset, max_timestamp_ms)

    def note(self, position: int, size_bytes: int, last_offset: int, max_timestamp_ms: int) -> None:
        """Keep the indexes up with a batch that is in the file."""
        if max_timestamp_ms > self.largest[0]:
            self.largest = TimestampOffset(max_timestamp_ms, last_offset)
        if self._unindexed_bytes > self.index_interval_bytes:
            self.offsets.append(last_offset, position)
            self.times.append_if_later(*self.largest)
            self.is_index_full = self.offsets.is_full or self.times.is_full
            self._unindexed_bytes = 0
        self._unindexed_bytes += size_bytes

    def finish(self) -> None:
        """The segment will not grow any more, or its log is closed."""
        self.times.append_if_later(*self.largest)
        self.offsets.spill()
        self.times.spill()
        self.aborted.spill()

    def sync(self) -> None:
        self.file.sync()
        self.offsets.sync()
        self.times.sync()
        self.aborted.sync()

    def truncate(self, offset: int) -> int:
        """Cut off the batch that holds `offset` and all that follow; returns where the segment ends now."""
        place = self.locate(offset)
        if place is None:
            return offset
        end = min(offset, place.base_offset)
        self.offsets.truncate(end)
        self.times.truncate(end)
        self.aborted.truncate(end)
        self.file.truncate(place.position)
        self.unchecked_end = min(self.unchecked_end, place.position)
        self.is_index_full = False
        self.resume()
        return end

    # --- reading ------------------------------------------------------------------------------------------------

    def locate(self, offset: int) -> Place | None:
        """The first batch that ends at or after `offset`, or None where the segment ends before it."""
        position = self.offsets.position_before(offset)
        view = self.file.read(position, self.file.size - position)
        walked, end = 0, len(view)
        while walked < end:
            base_offset, last_offset, size_bytes = read_extent(view, walked)
            if last_offset >= offset:
                return Place(position + walked, base_offset, last_offset, size_bytes)
            walked += size_bytes
        return None

    def whole_batches(self, position: int, limit: int) -> tuple[int, int]:
        """Where the last whole batch before `limit` ends, and which offset comes there.

        `limit` lies inside the file; the index brings us close, so that not every batch is looked at.
        """
        start = max(position, self.offsets.batch_before(limit))
        view = self.file.read(start, min(limit + HEADER_BYTES, self.file.size) - start)
        walked, room = 0, limit - start
        base_offset, last_offset, size_bytes = read_extent(view, 0)
        while walked + size_bytes <= room:
            walked += size_bytes
            if walked + HEADER_BYTES > len(view):
                return start + walked, last_offset + 1
            base_offset, last_offset, size_bytes = read_extent(view, walked)
        return start + walked, base_offset

    def batches(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch. Raises ProtocolViolation where a batch is not whole."""
        end = self.file.size
        view = self.file.read(position, end - position)
        walked, room = 0, end - position
        while walked < room:
            if room - walked < HEADER_BYTES:
                raise ProtocolViolation(f"{self.file.path} ends inside the header at {position + walked}")
            header = BatchHeader._make(HEADER.unpack_from(view, walked))
            size_bytes = PREFIX_BYTES + header.length
            if not HEADER_BYTES <= size_bytes <= room - walked:
                raise ProtocolViolation(f"{self.file.path} ends inside the batch at {position + walked}")
            yield position + walked, header
            walked += size_bytes

    def batch_at(self, position: int, header: BatchHeader) -> memoryview:
        return self.file.read(position, header.size_bytes)

    def find_by_timestamp(self, timestamp_ms: int, start_offset: int) -> Found | None:
        """The first record at or after `start_offset` whose timestamp is not below `timestamp_ms`."""
        offset = max(start_offset, self.times.offset_before(timestamp_ms))
        for position, header in self.batches(self.offsets.position_before(offset)):
            if header.max_timestamp < timestamp_ms or header.last_offset < start_offset:
                continue
            for record in read_records(self.batch_at(position, header)):
                if record.timestamp >= timestamp_ms and record.offset >= start_offset:
                    return Found(record.offset, record.timestamp, header.leader_epoch)
        return None

    def check(self, position: int, size_bytes: int) -> int | None:
        """The first batch of these with a wrong CRC, by its first offset. None where all are sound, and now known so.

        Damage shows before it is served, and each batch is looked at once: what this process wrote it has checked.
        """
        view = self.file.read(position, size_bytes)
        for header, batch in split_batches(view):
            if header.magic != MAGIC or not crc_is_valid(batch):
                return header.base_offset
        if position <= self.unchecked_start:
            self.unchecked_start = max(self.unchecked_start, position + size_bytes)
        return None

    # --- opening ------------------------------------------------------------------------------------------------

    def resume(self) -> int:
        """Take up a segment as it is: read its last stretch, which the indexes do not cover; returns its end.

        Raises ProtocolViolation where the file ends inside a batch.
        """
        self.largest = self.times.last_entry() or TimestampOffset(NO_TIMESTAMP, self.base_offset)
        last = self.offsets.last_entry()
        end = self.base_offset
        self._unindexed_bytes = 0
        for _, header in self.batches(0 if last is None else last.position):
            end = header.next_offset
            self._unindexed_bytes += header.size_bytes
            if header.max_timestamp > self.largest.timestamp_ms:
                self.largest = TimestampOffset(header.max_timestamp, header.last_offset)
        self.note_first_timestamp()
        return end

    def note_first_timestamp(self) -> None:
        """Find the time from which the segment's age is counted."""
        self.first_timestamp_ms = NO_TIMESTAMP
        if self.file.size >= HEADER_BYTES:
            first = BatchHeader._make(HEADER.unpack_from(self.file.read(0, HEADER_BYTES), 0))
            self.first_timestamp_ms = first.max_timestamp

    def forget_indexes(self) -> None:
        """Start the indexes anew; `note` of every batch builds them."""
        self.offsets.clear()
        self.times.clear()
        self.aborted.clear()
        self.largest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        self.is_index_full = False
        self._unindexed_bytes = 0

    def has_sane_indexes(self) -> bool:
        """Whether the indexes can be those of this log."""
        if not (self.offsets.is_sane(self.file.size) and self.times.is_sane):
            return False
        if not self.aborted.is_sane(self.base_offset, self.offset_max):
            return False
        # Batches with a time, and no time in the index: it was lost.
        self.note_first_timestamp()
        return len(self.times) > 0 or self.first_timestamp_ms < 0

    @property
    def retention_timestamp_ms(self) -> int:
        """How old the youngest record is; without timestamps, when the file was last written."""
        if self.largest.timestamp_ms >= 0:
            return self.largest.timestamp_ms
        return self._disk.modified_ms(self.file.path)

    # --- the end ------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Let go of maps and descriptors."""
        self.file.release()
        self.offsets.release()
        self.times.release()
        self.aborted.release()

    def close(self) -> None:
        self.file.close()
        self.offsets.close()
        self.times.close()
        self.aborted.close()

    def paths(self) -> list[str]:
        """The segment's files that exist."""
        paths = [os.path.join(self.directory, offset_file(self.base_offset, suffix)) for suffix in SEGMENT_FILES]
        return [path for path in paths if self._disk.exists(path)]
