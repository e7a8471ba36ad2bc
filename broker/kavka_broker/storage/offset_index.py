"""Where in a segment to begin to look for an offset: the `.index` file.

    relative offset int32, position int32

An entry is made for the first batch after every `index.interval.bytes`: the last offset of that batch and where the
batch begins. So the search for an offset begins at the last entry that is not above it, and goes on from batch to
batch.
"""

from struct import Struct
from typing import ClassVar, NamedTuple

from kavka_broker.storage.index_file import IndexFile


class OffsetPosition(NamedTuple):
    """The last offset of a batch, and the position of the batch."""

    offset: int
    position: int


class OffsetIndex(IndexFile):
    """Sparse map from offsets to positions."""

    ENTRY: ClassVar[Struct] = Struct(">ii")

    __slots__ = ()

    def append(self, last_offset: int, position: int) -> None:
        assert last_offset >= self.base_offset, f"{self.path}: {last_offset} in a segment from {self.base_offset} on"
        assert position >= 0
        self._put(last_offset - self.base_offset, position)

    def position_before(self, offset: int) -> int:
        """A position at or before the batch that holds `offset`."""
        found = self._floor(0, offset - self.base_offset)
        return 0 if found is None else max(found[1], 0)

    def positions_before(self, offset: int, count: int) -> list[int]:
        """That position, and as many that lie further ahead, for where the first leads nowhere."""
        return [max(position, 0) for _, position in self._floors(0, offset - self.base_offset, count)] or [0]

    def batch_before(self, position: int) -> int:
        """The last indexed batch that begins at or before `position`."""
        found = self._floor(1, position)
        return 0 if found is None else found[1]

    def last_entry(self) -> OffsetPosition | None:
        """The last entry; None for one that a disk has changed so that no file has such a position."""
        if self._last is None or self._last[1] < 0:
            return None
        return OffsetPosition(self.base_offset + self._last[0], self._last[1])

    def truncate(self, offset: int) -> None:
        """Forget `offset` and what follows."""
        self._keep_below(0, offset - self.base_offset)

    def is_sane(self, log_size: int) -> bool:
        """Whether it can be an index of this log: not with a cut entry, a preallocated tail or wild positions."""
        if self.is_cut:
            return False
        last = self._last
        return last is None or (last[0] >= 0 and 0 <= last[1] < log_size and last != (0, 0))


assert OffsetIndex.ENTRY.size == 8, "an entry of Kafka's index has 8 bytes"
