"""State batches as bytes: rows as Apache Kafka's messages and records of share groups have them.

Thousands of batches take a few kilobytes, and a snapshot of them is written and read without an object for each.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, Self

from kavka_broker.core.share.state_batches import StateBatch, combine

_ROW: Final = Struct(">qqbhx")  # first and last offset, state, deliveries; no tagged fields
_OFFSET: Final = Struct(">q")
ROW_BYTES: Final = _ROW.size


@dataclass(frozen=True, slots=True)
class PackedBatches:
    """Batches in order and without overlaps. Neighbours that touch have different states."""

    rows: bytes = b""

    @classmethod
    def of(cls, batches: Iterable[StateBatch]) -> Self:
        """Return the batches packed, which are in order and without overlaps."""
        return cls(_pack(batches))

    def __len__(self) -> int:
        return len(self.rows) // ROW_BYTES

    def __iter__(self) -> Iterator[StateBatch]:
        return map(StateBatch._make, _ROW.iter_unpack(self.rows))

    def is_combined(self, start_offset: int, low: int = 0, high: int | None = None) -> bool:
        """Whether these are batches from an offset on in order and without overlaps, none like the one it touches. With
        `low` and `high` the batches of these numbers are looked at, as those of lower numbers are known to be.
        """
        end, state = start_offset, (-1, -1)
        if low:
            _, last, *of_batch = _ROW.unpack_from(self.rows, (low - 1) * ROW_BYTES)
            end, state = last + 1, (of_batch[0], of_batch[1])
        rows = self.rows[low * ROW_BYTES : None if high is None else high * ROW_BYTES]
        for first, last, *of_batch in _ROW.iter_unpack(rows):
            if not end <= first <= last or (first == end and tuple(of_batch) == state):
                return False
            end, state = last + 1, (of_batch[0], of_batch[1])
        return True

    def part(self, low: int, high: int) -> list[StateBatch]:
        """Return some of the batches, by their numbers."""
        return [StateBatch._make(row) for row in _ROW.iter_unpack(self.rows[low * ROW_BYTES : high * ROW_BYTES])]

    def first_of(self, number: int) -> int:
        """Return the first offset of a batch."""
        first: int = _OFFSET.unpack_from(self.rows, number * ROW_BYTES)[0]
        return first

    def last_of(self, number: int) -> int:
        """Return the last offset of a batch."""
        last: int = _OFFSET.unpack_from(self.rows, number * ROW_BYTES + _OFFSET.size)[0]
        return last

    def since(self, start_offset: int) -> "PackedBatches":
        """Return what is left of the batches from an offset on."""
        begin = bisect_left(range(len(self)), start_offset, key=self.last_of)
        left = self.rows[begin * ROW_BYTES :]
        if left and self.first_of(begin) < start_offset:
            (cut,) = self.part(begin, begin + 1)
            left = _pack([cut._replace(first_offset=start_offset)]) + left[ROW_BYTES:]
        return PackedBatches(left)


def overlay(known: PackedBatches, written: Sequence[StateBatch], start_offset: int) -> PackedBatches:
    """Return what `combine` makes of both, from `start_offset` on. Only the batches are looked at that those which are
    written overlap or touch: the rest is copied as it is.
    """
    known = known.since(start_offset)
    numbers = range(len(known))
    pieces: list[bytes] = []
    taken = low = high = 0
    group: list[StateBatch] = []
    for batch in combine(written, start_offset):
        begin = bisect_left(numbers, batch.first_offset - 1, lo=low, key=known.last_of)
        if group and begin >= high:
            pieces += known.rows[taken * ROW_BYTES : low * ROW_BYTES], _combined(known, low, high, group, start_offset)
            taken, group = high, []
        if not group:
            low = begin
        high = max(low, bisect_right(numbers, batch.last_offset + 1, lo=low, key=known.first_of))
        group.append(batch)
    if group:
        pieces += known.rows[taken * ROW_BYTES : low * ROW_BYTES], _combined(known, low, high, group, start_offset)
        taken = high
    return PackedBatches(b"".join([*pieces, known.rows[taken * ROW_BYTES :]]))


def _combined(known: PackedBatches, low: int, high: int, written: Sequence[StateBatch], start_offset: int) -> bytes:
    return _pack(combine([*known.part(low, high), *written], start_offset))


def _pack(batches: Iterable[StateBatch]) -> bytes:
    return b"".join([_ROW.pack(*batch) for batch in batches])
