"""Reading a log: whole batches from an offset on (records by time: `time_search`).

A consumer reads on where it stopped. The log remembers where the last readers stopped, so that such a read needs no
search at all: a dictionary look-up, and a slice of the map. Whoever comes from elsewhere is served by the sparse index
and a walk over the headers behind the entry.

Batches that were there when a clean start opened the log are checked when they are first read (CRC, offsets, leader
epoch): a disk may have changed them while nobody looked. A reader that doubts what it was given has them checked again.
What does not hold, and what the disk does not give out at all, is CORRUPT_MESSAGE: damage of this one replica.
"""

from typing import Final, NamedTuple

from kavka_broker.logs import get
from kavka_broker.loop.slices import Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.records.batch import EXTENT_BYTES
from kavka_broker.storage.batch_walk import Damage, OtherEpoch
from kavka_broker.storage.disk_errors import is_passing
from kavka_broker.storage.epoch_file import EpochFile
from kavka_broker.storage.log_state import LogState
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.segments import Segments
from kavka_broker.storage.transaction_index import AbortedTransaction, Trust

log = get("storage")

#: How many readers' positions are remembered, so that each goes on where it stopped without a search.
READERS_MAX: Final = 64


class Chunk(NamedTuple):
    """Whole batches, ready to be sent. `end_offset` comes after them; -1 where there are none."""

    parts: list[memoryview]
    size_bytes: int
    end_offset: int = -1


EMPTY: Final = Chunk([], 0)


class Reader:
    """Reads one log, and remembers where its readers stopped."""

    __slots__ = ("_damaged_at", "_epoch_file", "_known", "_segments", "_state", "_upper", "places")

    def __init__(self, state: LogState, segments: Segments, epoch_file: EpochFile) -> None:
        self._state = state
        self._segments = segments
        self._epoch_file = epoch_file
        self._known = segments.all  # the list that all places are of
        self.places: dict[int, tuple[Segment, int]] = {}
        self._upper: tuple[int, Segment, int] | None = None
        self._damaged_at = -1  # offset of the last damage in the log: readers that ask again shall not fill the log

    def read(self, offset: int, bytes_max: int, upper: int, at_least_one: bool, is_doubted: bool) -> Chunk:
        """As `Log.read`, with `offset` below `upper`, and both in the log. Raises ProtocolViolation and OSError, from
        which `told` makes the answer.
        """
        segments = self._segments
        if self._known is not segments.all:
            self.forget_gone()
        known = self.places.get(offset)
        if known is None or (known[1] == known[0].file.size and known[0] is not segments.active):
            known = segments.locate(offset)
        segment, position = known
        limit, bound = self._limit(segment, upper)
        next_offset = bound
        size = limit - position
        if size <= 0:
            if upper == self._state.end_offset:
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
            size, next_offset = self._sound(segment, position, size, offset, next_offset, min(next_offset, bound))
        assert view is None or size <= len(view), f"{self._state.name}: {size} of {len(view)} bytes"
        self._remember(next_offset, segment, position + size)
        part = segment.file.read(position, size) if view is None else view[:size]
        return Chunk([part], size, next_offset)

    def _sound(
        self, segment: Segment, position: int, size: int, offset: int, next_offset: int, ceiling: int
    ) -> tuple[int, int]:
        """How much of a stretch holds, and which offset comes there. Raises ProtocolViolation where it is nothing."""
        try:
            self._check(segment, position, size, offset, ceiling)
        except Damage as damage:
            # What comes before it is sound; a reader that goes on comes back for the rest.
            if damage.position <= position:
                raise
            size, next_offset = damage.position - position, damage.next_offset
        assert size > 0
        self._segments.has_doubted |= segment.aborted.trust is Trust.DOUBTED
        return size, next_offset

    def _check(self, segment: Segment, position: int, size: int, offset: int, ceiling: int) -> None:
        """Raises ProtocolViolation."""
        floor = offset
        if segment.first_offset(position) != offset:
            # It begins below, or compaction has left a gap. Or it says so, and what comes before it says otherwise.
            floor = segment.end_before(position, offset)
        try:
            segment.check(position, size, floor, ceiling, self._epoch_file.epochs)
        except OtherEpoch:
            if not self._epoch_file.were_wrong():
                raise
            segment.check(position, size, floor, ceiling, self._epoch_file.epochs)

    def _limit(self, segment: Segment, upper: int) -> tuple[int, int]:
        """Up to which position `segment` may be read, and which offset comes after that."""
        segments = self._segments
        if upper == self._state.end_offset:
            if segment is segments.active:
                return segment.file.size, upper
            return segment.file.size, segments.base_behind(segment)
        assert upper <= self._state.end_offset, f"{self._state.name} is read up to {upper}"
        if self._upper is None or self._upper[0] != upper:
            self._upper = (upper, *segments.locate(upper))
        _, upper_segment, upper_position = self._upper
        if segment is upper_segment:
            return upper_position, upper
        if segment.base_offset > upper:
            return 0, upper
        return segment.file.size, segments.base_behind(segment)

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        if len(self.places) >= READERS_MAX:
            del self.places[next(iter(self.places))]
        self.places[offset] = (segment, position)
        assert 0 < position <= segment.file.size, f"{self._state.name}: a reader stopped at {position}"
        assert len(self.places) <= READERS_MAX, len(self.places)

    def forget_gone(self) -> None:
        """Forget the places in segments that the log has no more."""
        if self._known is not self._segments.all:
            self._known = self._segments.all
            self.places.clear()
            self._upper = None

    # --- other questions of readers -----------------------------------------------------------------------------

    def aborted_between(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from `offset` up to `end_offset`."""
        found: list[AbortedTransaction] = []
        if not self._segments.has_aborted:
            return found
        try:
            for segment in self._segments.from_offset(offset):
                if segment.aborted.last_offset >= offset and segment.aborted.collect(offset, end_offset, found):
                    break
        except OSError as problem:
            raise self._state.storage_error("read", problem) from problem
        return found

    def doubt_epochs(self) -> Work[None]:
        """The leader has records where this log ends, and does not know its newest epoch. That has written nothing, or
        the epoch file is another log's. Raises KAFKA_STORAGE_ERROR or CORRUPT_MESSAGE where the log cannot be read.
        """
        try:
            yield from self._epoch_file.drop_unwritten()
        except OSError as problem:
            raise self.told(self._segments.first_base, problem) from problem

    def told(self, offset: int, problem: OSError | ProtocolViolation) -> BrokerError:
        """The error for a reader that cannot have what is at `offset`, and why."""
        if isinstance(problem, OSError) and is_passing(problem):
            return self._state.storage_error("read", problem)
        name, reason = self._state.name, str(problem)
        if self._damaged_at != offset:
            self._damaged_at = offset
            log.error("log.damaged", log=str(name), offset=offset, reason=reason)
        return BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{name}: {reason}")
