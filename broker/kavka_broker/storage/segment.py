"""One stretch of a log: a file of batches, and two sparse indexes over it.

Everything here works on whole batches and their headers; no record is ever looked at.
The last segment of a log is its active one, the only one that grows.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from kavka_broker.core.partition.leader_epochs import LeaderEpochs
from kavka_broker.logs import get
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import (
    HEADER_BYTES,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    crc_is_valid,
    read_header,
    split_batches,
)
from kavka_broker.storage.batch_walk import (
    ANY_OFFSET,
    LONG_WINDOW_BYTES,
    RESYNC_BYTES_MAX,
    Damage,
    OtherEpoch,
    Place,
    Walk,
    end_at,
    find,
    headers,
    resync,
    what_is_wrong,
    whole_in,
    whole_until,
)
from kavka_broker.storage.disk import Disk, File
from kavka_broker.storage.file_names import (
    LOG,
    OFFSET_INDEX,
    SEGMENT_FILES,
    TIME_INDEX,
    TRANSACTION_INDEX,
    offset_file,
)
from kavka_broker.storage.offset_index import OffsetIndex, OffsetPosition
from kavka_broker.storage.time_index import TimeIndex, TimestampOffset
from kavka_broker.storage.transaction_index import TransactionIndex, Trust

log = get("storage")

# An index holds offsets relative to the segment's first as int32.
OFFSETS_MAX = 2**31 - 1
#: Entries of the index that are tried before the search begins at the segment's start.
ENTRIES_TRIED_MAX: Final = 2


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
        "is_age_known",
        "is_index_full",
        "is_index_wrong",
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
        suffix: str = "",
    ) -> None:
        assert index_interval_bytes >= 0
        path = os.path.join(directory, offset_file(base_offset, ""))
        self._disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.offset_max = base_offset + OFFSETS_MAX
        self.created_ms = now_ms
        self.index_interval_bytes = index_interval_bytes
        self.file = disk.open(path + LOG + suffix)
        self.offsets = OffsetIndex(disk, path + OFFSET_INDEX + suffix, base_offset, index_bytes_max)
        self.times = TimeIndex(disk, path + TIME_INDEX + suffix, base_offset, index_bytes_max)
        self.aborted = TransactionIndex(disk, path + TRANSACTION_INDEX + suffix)
        self.is_index_full = False
        self.is_index_wrong = False  # an entry leads nowhere: a start is to make them again
        self.first_timestamp_ms = NO_TIMESTAMP
        self.largest = self.times.last_entry() or TimestampOffset(NO_TIMESTAMP, base_offset)
        self.is_age_known: bool | None = None  # whether the log bears `largest` out; None before anybody has asked
        self._unindexed_bytes = 0
        # Positions between which no batch's CRC was looked at by this process: what it found when it started cleanly.
        self.unchecked_start, self.unchecked_end = 0, self.file.size

    @property
    def size_bytes(self) -> int:
        return self.file.size

    @property
    def modified_ms(self) -> int:
        """When the file was last written."""
        return self._disk.modified_ms(self.file.path)

    # --- writing ------------------------------------------------------------------------------------------------

    def append(self, batch: Buffer, last_offset: int, max_timestamp_ms: int) -> None:
        """Write one batch. Raises OSError, and then nothing has changed."""
        position = self.file.size
        self.file.append(batch)
        assert self.file.size == position + len(batch), f"{self.file.path}: {self.file.size} behind {position}"
        if not position:
            self.first_timestamp_ms = max_timestamp_ms
        self.note(position, len(batch), last_offset, max_timestamp_ms)

    def note(self, position: int, size_bytes: int, last_offset: int, max_timestamp_ms: int) -> None:
        """Keep the indexes up with a batch that is in the file."""
        if max_timestamp_ms > self.largest[0]:
            self.largest = TimestampOffset(max_timestamp_ms, last_offset)
        if self._unindexed_bytes > self.index_interval_bytes:
            assert position < self.file.size, f"{self.file.path} is indexed behind its end"
            self.offsets.append(last_offset, position)
            self.times.append_if_later(*self.largest)
            self.is_index_full = self.offsets.is_full or self.times.is_full
            self._unindexed_bytes = 0
        self._unindexed_bytes += size_bytes

    def finish(self) -> None:
        """The segment will not grow any more, or its log is closed."""
        self.file.end_room()
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
        """Cut off the batch that holds `offset` and all that follow; returns where the segment ends now: with its last
        batch, though `offset` may lie in a gap that compaction has left behind that.
        """
        place = self.first_to_go(offset)
        if place is None:
            return self.resume()
        end = min(offset, place.base_offset)
        self.offsets.truncate(end)
        self.times.truncate(end)
        self.aborted.truncate(end)
        assert end >= self.base_offset
        self.file.truncate(place.position)
        assert self.file.size == place.position, f"{self.file.path} has {self.file.size} bytes, cut at {place.position}"
        self.unchecked_end = min(self.unchecked_end, place.position)
        self.is_index_full = False
        self._drop_wrong_index()
        return self.resume()

    def _drop_wrong_index(self) -> None:
        """Start the indexes again if what is their end leads nowhere now: a start has looked at the former end."""
        last = self.offsets.last_entry()
        if len(self.offsets) and (last is None or not self.is_batch_at(last)):
            self._doubt_index(-1 if last is None else last.position)
            self.offsets.clear()
            self.times.clear()

    def end_below(self, offset: int) -> int:
        """Where the segment would end without the batch that holds `offset` and all that follow."""
        place = self.first_to_go(offset)
        try:
            return self.end_before(self.size_bytes if place is None else place.position, offset)
        except Damage:
            return offset if place is None else min(offset, place.base_offset)

    def first_to_go(self, offset: int) -> Place | None:
        """As `locate`, for a cut. What stands there may be no batch at all, if it begins with `offset`."""
        try:
            return self.locate(offset)
        except Damage as damage:
            if damage.next_offset != offset:
                raise
            return Place(damage.position, offset, offset, 0)

    # --- reading ------------------------------------------------------------------------------------------------

    def locate(self, offset: int) -> Place | None:
        """The first batch that ends at or after `offset`, or None where the segment ends before it. Raises Damage."""
        position = self.offsets.position_before(offset)
        try:
            return find(self.file, position, offset, self.base_offset, offset if position else ANY_OFFSET)
        except Damage:
            return self._locate_carefully(offset)

    def _locate_carefully(self, offset: int) -> Place | None:
        """As `locate`, where the index leads nowhere or to damaged bytes."""
        begun = self._start_of_search(offset)
        while True:
            try:
                return begun if begun is None or begun.last_offset >= offset else self._find_behind(begun, offset)
            except Damage as damage:
                # What lies behind it may be asked for; what lies in it may not.
                begun = resync(self.file, damage, offset, RESYNC_BYTES_MAX)
                if begun is None:
                    raise

    def _find_behind(self, place: Place, offset: int) -> Place | None:
        return find(self.file, place.position + place.size_bytes, offset, place.last_offset + 1)

    def _start_of_search(self, offset: int) -> Place | None:
        """The batch to begin with: the one that the index names, if that begins at or below `offset`."""
        for position in self.offsets.positions_before(offset, ENTRIES_TRIED_MAX):
            if not position:
                break
            try:
                return find(self.file, position, self.base_offset, self.base_offset, offset)
            except Damage:
                self._doubt_index(position)
        return find(self.file, 0, self.base_offset, self.base_offset)

    def begin_before(self, offset: int) -> int:
        """The position of a batch at or before the one that holds `offset`, for a walk that finds damage by itself.
        Raises OSError.
        """
        position = self.offsets.position_before(offset)
        if position and not self._leads(position, offset):
            self._doubt_index(position)
            return 0
        return position

    def _doubt_index(self, position: int) -> None:
        if not self.is_index_wrong:
            self.is_index_wrong = True
            log.warning("index.not_believed", path=self.offsets.path, position=position)

    def whole_batches(self, view: memoryview, position: int, limit: int, offset: int) -> tuple[int, int]:
        """Where the last whole batch before `limit` ends, and which offset comes there; `offset` is at `position`.

        `limit` lies inside the file, and `view` is what the file holds from `position` to it and a little beyond. The
        index brings us close, so that not every batch is looked at. Raises Damage.
        """
        assert position <= limit <= self.file.size, f"{self.file.path}: {position} to {limit} of {self.file.size}"
        near = self.offsets.batch_before(limit)
        start, floor = (near, offset) if position < near < limit else (position, self.base_offset)
        found = whole_in(view, start - position, limit - position, floor, self.file.size - position)
        if found is not None:
            return position + found[0], found[1]
        try:
            return whole_until(self.file, start, limit, floor)
        except Damage:
            if start == position:
                raise
            self._doubt_index(near)
        return whole_until(self.file, position, limit, self.base_offset)

    def batch_end(self, position: int) -> tuple[int, int]:
        """Where the batch at `position` ends, and which offset comes there. Raises Damage."""
        place = find(self.file, position, self.base_offset, self.base_offset)
        assert place is not None, f"{self.file.path} ends at {position}"
        return position + place.size_bytes, place.last_offset + 1

    def first_offset(self, position: int) -> int:
        """What the batch at `position` says that it begins with."""
        return self.header_at(position).base_offset

    def header_at(self, position: int) -> BatchHeader:
        return read_header(self.file.read(position, min(HEADER_BYTES, self.file.size - position)))

    def batches(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch. Raises ProtocolViolation where a batch is not whole."""
        return headers(self.file, position)

    def sound_batches(
        self,
        position: int = 0,
        *,
        is_checked: bool = False,
        synced_offset: int = ANY_OFFSET,
        ceiling: int = ANY_OFFSET,
        file: File | None = None,
    ) -> Iterator[tuple[int, BatchHeader]]:
        """As `batches`, but past those that do not hold, for the ones behind them count as far as `synced_offset`. With
        `is_checked` each has to have a right CRC; offsets ascend in any case, and stay below `ceiling`. A thread has a
        `file` of its own (`open_to_read`).
        """
        file = self.file if file is None else file
        walk = Walk(file, position, self.base_offset, LONG_WINDOW_BYTES, ceiling)
        while True:
            try:
                while (place := walk.peek()) is not None:
                    header = read_header(file.read(place.position, min(HEADER_BYTES, file.size - place.position)))
                    if is_checked and not crc_is_valid(file.read(place.position, header.size_bytes)):
                        raise walk.damage("it has a wrong CRC")
                    yield place.position, header
                    walk.step(place)
                return
            except Damage as damage:
                found = resync(file, damage, min(self.offset_max, synced_offset - 1, ceiling))
                if found is None:
                    return
                walk = Walk(file, found.position, found.base_offset, LONG_WINDOW_BYTES, ceiling)

    def take_over(self, cleaned: "Segment") -> None:
        """The files are those of `cleaned`, under other names; what is known of it holds, and was checked."""
        assert self.base_offset == cleaned.base_offset
        self.largest, self.first_timestamp_ms = cleaned.largest, cleaned.first_timestamp_ms
        self.unchecked_end = 0

    def open_to_read(self) -> File:
        """A handle for another thread. Raises OSError; FileNotFoundError where the segment is gone."""
        return self._disk.open_to_read(self.file.path, self.file.size)

    def batch_at(self, position: int, header: BatchHeader) -> memoryview:
        return self.file.read(position, header.size_bytes)

    def check(self, position: int, size_bytes: int, floor: int, ceiling: int, epochs: LeaderEpochs) -> None:
        """Whether all batches of this stretch are sound, with offsets from `floor` to below `ceiling`. Raises Damage.

        Damage shows before it is served, and each batch is looked at once: what this process wrote it has checked.
        """
        assert size_bytes > 0
        assert position + size_bytes <= self.file.size, f"{self.file.path} ends before {position + size_bytes}"
        at, next_offset = position, floor
        try:
            for header, batch in split_batches(self.file.read(position, size_bytes)):
                reason = what_is_wrong(header, batch, next_offset, ceiling)
                if not reason and header.base_offset > next_offset and self._begins_below(at + len(batch), header):
                    reason = f"it begins at {header.base_offset}, behind the next one"
                if reason:
                    raise Damage(self.file.path, at, max(next_offset, self.base_offset), reason)
                reigned = epochs.epoch_at(header.base_offset)
                if header.leader_epoch != reigned >= 0:
                    reason = f"it is of leader epoch {header.leader_epoch}, there it was {reigned}"
                    raise OtherEpoch(self.file.path, at, header.base_offset, reason)
                if header.attributes & TRANSACTIONAL_BIT and self.aborted.trust is Trust.FOUND:
                    self.aborted.trust = Trust.DOUBTED
                at, next_offset = at + len(batch), header.next_offset
        except Damage:
            raise
        except ProtocolViolation as problem:
            raise Damage(self.file.path, at, max(next_offset, self.base_offset), str(problem)) from None
        if at != position + size_bytes:
            raise Damage(self.file.path, at, next_offset, "its end is not where the next one begins")
        if position <= self.unchecked_start:
            self.unchecked_start = max(self.unchecked_start, position + size_bytes)

    def _begins_below(self, position: int, header: BatchHeader) -> bool:
        """Whether the batch at `position` has offsets of the one before, which has left a gap: then that is wrong."""
        if self.file.size - position < HEADER_BYTES:
            return False
        return self.header_at(position).base_offset < header.next_offset

    def end_before(self, position: int, offset: int) -> int:
        """The offset at which the batch before `position` ends, going back two entries of the index. Raises Damage."""
        begun = min(self.offsets.positions_before(offset - 1, ENTRIES_TRIED_MAX)[-1], position)
        try:
            return end_at(self.file, begun, position, self.base_offset)
        except Damage:
            return end_at(self.file, 0, position, self.base_offset)

    # --- opening ------------------------------------------------------------------------------------------------

    def resume(self, epochs: LeaderEpochs | None = None) -> int:
        """Take up a segment as it is: read its last stretch, which the indexes do not cover; returns its end.

        Raises ProtocolViolation where the file ends inside a batch; with `epochs` also where one has changed.
        """
        self.largest = self.times.last_entry() or TimestampOffset(NO_TIMESTAMP, self.base_offset)
        self.is_age_known = None
        last = self.offsets.last_entry()
        end, begin = self.base_offset, 0 if last is None else last.position
        self._unindexed_bytes = 0
        for _, header in self.batches(begin):
            end = header.next_offset
            self._unindexed_bytes += header.size_bytes
            if header.max_timestamp > self.largest.timestamp_ms:
                self.largest = TimestampOffset(header.max_timestamp, header.last_offset)
        if epochs is not None and begin < self.file.size:
            self.check(begin, self.file.size - begin, self.base_offset, end, epochs)
        self.note_first_timestamp()
        return end

    def note_first_timestamp(self) -> None:
        """Find the time from which the segment's age is counted."""
        self.first_timestamp_ms = NO_TIMESTAMP
        if self.file.size >= HEADER_BYTES:
            self.first_timestamp_ms = self.header_at(0).max_timestamp

    def forget_indexes(self) -> None:
        """Start the indexes again; `note` of every batch builds them."""
        self.offsets.clear()
        self.times.clear()
        self.aborted.clear()
        self.largest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        self.is_age_known = None
        self.is_index_full = False
        self._unindexed_bytes = 0
        assert not len(self.offsets)
        assert not len(self.times)

    def has_sane_indexes(self) -> bool:
        """Whether the indexes can be those of this log: their last entries lead to where they say."""
        if not (self.offsets.is_sane(self.file.size) and self.times.is_sane):
            return False
        if not self.aborted.is_sane(self.base_offset, self.offset_max):
            return False
        last = self.offsets.last_entry()
        if last is not None and not self.is_batch_at(last):
            return False
        # Batches with a time, and no time in the index: it was lost.
        self.note_first_timestamp()
        return len(self.times) > 0 or self.first_timestamp_ms < 0

    def is_batch_at(self, entry: OffsetPosition) -> bool:
        """Kafka's own entries may name the end of several batches, and the position of the first."""
        return self._leads(entry.position, entry.offset, entry.offset)

    def _leads(self, position: int, begins_max: int, ends_max: int = ANY_OFFSET) -> bool:
        """Whether a batch is at `position` that begins and ends up to there."""
        try:
            place = find(self.file, position, self.base_offset, self.base_offset, begins_max)
        except Damage:
            return False
        return place is not None and place.last_offset <= ends_max

    # --- the end ------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Let go of maps and descriptors."""
        self.file.release()
        self.offsets.release()
        self.times.release()
        self.aborted.release()

    def close(self) -> None:
        if self.is_index_wrong:
            with suppress(OSError):
                self.offsets.clear()
                self.times.clear()
        self.file.close()
        self.offsets.close()
        self.times.close()
        self.aborted.close()

    def paths(self) -> list[str]:
        """The segment's files that exist."""
        paths = [os.path.join(self.directory, offset_file(self.base_offset, suffix)) for suffix in SEGMENT_FILES]
        return [path for path in paths if self._disk.exists(path)]
