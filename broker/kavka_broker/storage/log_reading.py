"""Reading a log: whole batches from an offset on (records by time: `time_search`).

A consumer reads on where it stopped. The log remembers where the last readers stopped, so that such a read needs no
search at all: a dictionary look-up, and a slice of the map. Whoever comes from elsewhere is served by the sparse index
and a walk over the headers behind the entry.

Batches that were there when a clean start opened the log are checked when they are first read (CRC, offsets, leader
epoch): a disk may have changed them while nobody looked. A reader that doubts what it was given has them checked again.
What does not hold, and what the disk does not give out at all, is CORRUPT_MESSAGE: damage of this one replica.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from kavka_broker.core.partition.leader_epochs import EpochStart
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.records.batch import EXTENT_BYTES
from kavka_broker.slices import Work, as_long_as, at_once
from kavka_broker.storage.batch_walk import Damage, OtherEpoch
from kavka_broker.storage.disk import is_passing
from kavka_broker.storage.epoch_check import corrected
from kavka_broker.storage.log_segments import READERS_MAX, SegmentedLog
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.transaction_index import AbortedTransaction, Trust

log = get("storage")


class Chunk(NamedTuple):
    """Whole batches, ready to be sent. `end_offset` comes after them; -1 where there are none."""

    parts: list[memoryview]
    size_bytes: int
    end_offset: int = -1


EMPTY: Final = Chunk([], 0)


class _LookedAt(NamedTuple):
    """What must stay as it is while somebody walks over the log's headers in slices."""

    segments: list[Segment]
    end_offset: int
    truncations: int
    epochs: Sequence[EpochStart]
    is_closed: bool


class ReadableLog(SegmentedLog):
    """A log that can be read."""

    # Where damage was last named in the log, which readers who ask again shall not fill.
    _damaged_at = -1
    _are_epochs_checked = False

    def read(
        self,
        offset: int,
        bytes_max: int,
        *,
        upper_offset: int | None = None,
        at_least_one: bool = True,
        is_doubted: bool = False,
    ) -> Chunk:
        """Whole batches below `upper_offset`, from the one that holds `offset`, at most `bytes_max` of one segment.

        With `at_least_one` the first batch comes also where it alone is larger. What `is_doubted` is checked in any
        case. Raises OFFSET_OUT_OF_RANGE, and CORRUPT_MESSAGE.
        """
        end_offset = self.log_end_offset
        upper = end_offset if upper_offset is None else min(upper_offset, end_offset)
        if not self.log_start_offset <= offset <= end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is outside {self.log_start_offset} to {end_offset} of {self.name}",
            )
        if offset >= upper:
            return EMPTY
        try:
            return self._read(offset, bytes_max, upper, at_least_one, is_doubted)
        except ProtocolViolation as problem:
            raise self._damaged(offset, str(problem)) from problem
        except OSError as problem:
            if is_passing(problem):
                raise self._storage_error("read", problem) from problem
            raise self._damaged(offset, str(problem)) from problem

    def _read(self, offset: int, bytes_max: int, upper: int, at_least_one: bool, is_doubted: bool) -> Chunk:
        known = self._readers.get(offset)
        if known is None or (known[1] == known[0].file.size and known[0] is not self._active):
            known = self._locate(offset)
        segment, position = known
        limit, bound = self._limit(segment, upper)
        next_offset = bound
        size = limit - position
        if size <= 0:
            if upper == self.log_end_offset:
                raise Damage(segment.file.path, position, offset, "nothing is there up to the end")
            return EMPTY
        view = None
        if size > bytes_max:
            room = max(bytes_max, 0)
            view = segment.file.read(position, min(room + EXTENT_BYTES, segment.file.size - position))
            end, next_offset = segment.whole_batches(view, position, position + room, offset)
            if end == position:
                if not at_least_one:
                    return EMPTY
                view, (end, next_offset) = None, segment.batch_end(position)
            size = end - position
        if is_doubted or (position < segment.unchecked_end and position + size > segment.unchecked_start):
            try:
                self._check(segment, position, size, offset, min(next_offset, bound))
            except Damage as damage:
                # What comes before it is sound; who reads on comes back for the rest.
                if damage.position <= position:
                    raise
                size, next_offset = damage.position - position, damage.next_offset
            self.has_doubted |= segment.aborted.trust is Trust.DOUBTED
        self._remember(next_offset, segment, position + size)
        part = segment.file.read(position, size) if view is None else view[:size]
        return Chunk([part], size, next_offset)

    def aborted_between(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from `offset` up to `end_offset`."""
        found: list[AbortedTransaction] = []
        if not self.has_aborted:
            return found
        try:
            for segment in self.segments_from(offset):
                if segment.aborted.last_offset >= offset and segment.aborted.collect(offset, end_offset, found):
                    break
        except OSError as problem:
            raise self._storage_error("read", problem) from problem
        return found

    def _check(self, segment: Segment, position: int, size: int, offset: int, ceiling: int) -> None:
        """Raises ProtocolViolation."""
        floor = offset
        if segment.first_offset(position) != offset:
            # It begins below, or compaction has left a gap. Or it says so, and what comes before it says otherwise.
            floor = segment.end_before(position, offset)
        try:
            segment.check(position, size, floor, ceiling, self.epochs)
        except OtherEpoch:
            if not self._were_epochs_wrong():
                raise
            segment.check(position, size, floor, ceiling, self.epochs)

    def _were_epochs_wrong(self) -> bool:
        """Whether the batches say otherwise than the epoch file. It is a walk over the whole log, and taken once."""
        return at_once(self._correct_epochs())

    def _correct_epochs(self) -> Work[bool]:
        """As `_were_epochs_wrong`, in slices; nothing comes of it where the log changes in between."""
        if self._are_epochs_checked:
            return False
        before = self._looked_at
        work = corrected(self.epochs, before.segments, self.log_start_offset, self.log_end_offset)
        found = yield from as_long_as(lambda: self._looked_at == before, work)
        self._are_epochs_checked = self._looked_at == before
        if found is None:
            return False
        log.warning("epochs.rebuilt", directory=self.directory, entries=len(found.entries))
        self.epochs = found
        self._are_epochs_changed = True
        return True

    @property
    def _looked_at(self) -> "_LookedAt":
        return _LookedAt([*self.segments], self.log_end_offset, self.truncations, self.epochs.entries, self.is_closed)

    def doubt_epochs(self) -> Work[None]:
        """The leader has records where this log ends, and does not know its newest epoch. That has written nothing, or
        the epoch file is another log's. Raises KAFKA_STORAGE_ERROR or CORRUPT_MESSAGE where the log cannot be read.
        """
        try:
            yield from self._correct_epochs()
        except OSError as problem:
            raise self.unreadable(self.segments[0], problem) from problem
        if self._are_epochs_checked:
            self._are_epochs_changed |= self.epochs.truncate_from_end(self.log_end_offset)

    def _damaged(self, offset: int, reason: str) -> BrokerError:
        if self._damaged_at != offset:
            self._damaged_at = offset
            log.error("log.damaged", log=str(self.name), offset=offset, reason=reason)
        return BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{self.name}: {reason}")

    def _locate(self, offset: int) -> tuple[Segment, int]:
        index = max(0, bisect_right(self._bases, offset) - 1)
        while True:
            segment = self.segments[index]
            place = segment.locate(offset)
            if place is not None:
                return segment, place.position
            # Compaction may have left nothing between this offset and the next segment.
            index += 1
            if index == len(self.segments):
                return segment, segment.file.size

    def _limit(self, segment: Segment, upper: int) -> tuple[int, int]:
        """Up to which position `segment` may be read, and which offset comes after that."""
        if upper == self.log_end_offset:
            if segment is self._active:
                return segment.file.size, upper
            return segment.file.size, self._next_base(segment)
        if self._upper is None or self._upper[0] != upper:
            self._upper = (upper, *self._locate(upper))
        _, upper_segment, upper_position = self._upper
        if segment is upper_segment:
            return upper_position, upper
        if segment.base_offset > upper:
            return 0, upper
        return segment.file.size, self._next_base(segment)

    def _next_base(self, segment: Segment) -> int:
        return self._bases[bisect_right(self._bases, segment.base_offset)]

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        if len(self._readers) >= READERS_MAX:
            del self._readers[next(iter(self._readers))]
        self._readers[offset] = (segment, position)

    def unreadable(self, segment: Segment, problem: OSError) -> BrokerError:
        """What a reader is told whom the disk does not give a segment out."""
        if is_passing(problem):
            return self._storage_error("read", problem)
        return self._damaged(segment.base_offset, str(problem))
