"""Offsets by topic, partition and bucket of ten minutes, as runs.

A record belongs to the bucket of its own timestamp, whichever way it took. An offset that is added twice stands twice:
how often a client has met a record is what it tells.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

BUCKET_MS: Final = 600_000
Run = tuple[int, int]
"""The first offset and the last."""


class Place(NamedTuple):
    """Where records are: a partition, and the beginning of the bucket of their timestamps."""

    topic: str
    partition: int
    bucket_ms: int


class Counted(NamedTuple):
    """Records of one place: those with a known offset as runs, and the number of those without."""

    place: Place
    runs: list[Run]
    unplaced: int


class Ranges:
    """Offsets that were added; `size` is how much there is to tell."""

    def __init__(self) -> None:
        self._runs: dict[Place, list[list[int]]] = {}
        self._unplaced: dict[Place, int] = {}
        self.size = 0

    def add(self, topic: str, partition: int, timestamp_ms: int, offset: int) -> None:
        """Add a record. One without an offset, which a broker does not always tell, counts as unplaced."""
        place = Place(topic, partition, bucket_of(timestamp_ms))
        if offset < 0:
            self.size += place not in self._unplaced
            self._unplaced[place] = self._unplaced.get(place, 0) + 1
            return
        runs = self._runs.setdefault(place, [])
        if runs and runs[-1][1] == offset - 1:
            runs[-1][1] = offset
        else:
            runs.append([offset, offset])
            self.size += 1

    def take(self, other: "Ranges") -> None:
        """Add what another holds."""
        for place, runs in other._runs.items():
            self._runs.setdefault(place, []).extend(runs)
        for place, count in other._unplaced.items():
            self._unplaced[place] = self._unplaced.get(place, 0) + count
        self.size += other.size

    def __iter__(self) -> Iterator[Counted]:
        """Give what was added, by place."""
        for place in sorted(self._runs.keys() | self._unplaced.keys()):
            runs = [(first, last) for first, last in self._runs.get(place, ())]
            yield Counted(place, runs, self._unplaced.get(place, 0))


def bucket_of(timestamp_ms: int) -> int:
    """Return the beginning of the bucket; a record without a time belongs to the first there is."""
    return max(timestamp_ms, 0) // BUCKET_MS * BUCKET_MS
