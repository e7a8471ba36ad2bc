"""Up to which offset a segment's timestamps stay at or below a time: the `.timeindex` file.

    timestamp int64, relative offset int32

An entry says: the largest timestamp so far is this one, and it is in the batch that ends at this offset. Entries are
made together with those of the offset index, if the largest timestamp has grown since, and once more when the segment
is done, so that the last entry holds the largest timestamp of the segment.
"""

from struct import Struct
from typing import ClassVar, NamedTuple

from kavka_broker.protocol.records.batch import NO_TIMESTAMP
from kavka_broker.storage.index_file import IndexFile


class TimestampOffset(NamedTuple):
    """A largest timestamp, and the last offset of the batch that brought it."""

    timestamp_ms: int
    offset: int


class TimeIndex(IndexFile):
    """Sparse map from timestamps to offsets."""

    ENTRY: ClassVar[Struct] = Struct(">qi")

    __slots__ = ()

    @property
    def is_full(self) -> bool:
        """One entry is kept free for the end of the segment."""
        return len(self) >= self.entries_max - 1

    def append_if_later(self, timestamp_ms: int, offset: int) -> None:
        if timestamp_ms > (NO_TIMESTAMP if self._last is None else self._last[0]):
            assert offset >= self.base_offset, f"{self.path}: {offset} in a segment from {self.base_offset} on"
            self._put(timestamp_ms, offset - self.base_offset)

    def entry_before(self, timestamp_ms: int) -> TimestampOffset | None:
        """The last entry that is before `timestamp_ms`: what comes as late begins behind its offset."""
        found = self._floor(0, timestamp_ms - 1)
        return None if found is None else TimestampOffset(found[0], self.base_offset + found[1])

    def last_entry(self) -> TimestampOffset | None:
        return None if self._last is None else TimestampOffset(self._last[0], self.base_offset + self._last[1])

    def truncate(self, offset: int) -> None:
        """Forget `offset` and what follows."""
        self._keep_below(1, offset - self.base_offset)

    @property
    def is_sane(self) -> bool:
        if self.is_cut:
            return False
        last = self._last
        return last is None or (last[0] >= 0 and last[1] >= 0 and last != (0, 0))


assert TimeIndex.ENTRY.size == 12, "an entry of Kafka's time index has 12 bytes"
