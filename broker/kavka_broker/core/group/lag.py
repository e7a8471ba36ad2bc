"""How far groups are behind, in records and in time.

A partition's end at a few moments tells when a record was written: between two of them, by interpolation. The moments
are closer together the newer they are, so that a lag of seconds and one of days are told about equally well.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from heapq import heappush, heappushpop
from typing import Final, NamedTuple

Place = tuple[str, int]

SAMPLES_MAX: Final = 16
"""Of one partition: 256 bytes."""
LEVELS: Final = ("read_uncommitted", "read_committed")


class Ends(NamedTuple):
    """The ends of a partition for readers of both isolation levels."""

    high_watermark: int
    last_stable: int


class EndSamples:
    """Ends of one partition, the oldest first. Neither time nor offset goes back from one to the next."""

    __slots__ = ("_offsets", "_times", "is_seeded")

    def __init__(self) -> None:
        self._times = array("q")
        self._offsets = array("q")
        self.is_seeded = False  # from the timestamps of records, for what was written before the first sample

    def __len__(self) -> int:
        return len(self._times)

    @property
    def oldest_ms(self) -> int:
        return self._times[0]

    @property
    def end(self) -> int:
        return self._offsets[-1]

    def add(self, now_ms: int, end: int) -> None:
        """Add the end of now. After an end, or a clock, that has gone back nothing is known."""
        times, offsets = self._times, self._offsets
        if offsets and (end < offsets[-1] or now_ms < times[-1]):
            del times[:], offsets[:]
            self.is_seeded = False
        if len(offsets) > 1 and offsets[-2] == offsets[-1] == end:
            times[-1] = now_ms  # nothing was written since: the first and the last of these moments say so
            return
        times.append(now_ms)
        offsets.append(end)
        if len(times) > SAMPLES_MAX:
            self._drop_one()

    def seed(self, earlier: Iterable[tuple[int, int]]) -> None:
        """Put moments and ends before the first sample, where they fit: clients choose the timestamps of records."""
        self.is_seeded = True
        for at_ms, end in sorted(earlier, reverse=True):
            if self._times and at_ms < self._times[0] and 0 <= end <= self._offsets[0]:
                self._times.insert(0, at_ms)
                self._offsets.insert(0, end)
        while len(self._times) > SAMPLES_MAX:
            self._drop_one()

    def written_ms(self, offset: int) -> int | None:
        """When the record of an offset was written; None where that was before the first sample, or is still to be."""
        times, offsets = self._times, self._offsets
        after = bisect_right(offsets, offset)
        if after in {0, len(offsets)}:
            return None
        before = after - 1
        share = (offset + 1 - offsets[before]) / (offsets[after] - offsets[before])
        return int(times[before] + (times[after] - times[before]) * share)

    def _drop_one(self) -> None:
        """Drop the sample whose neighbours are closest together for their age. The first and the last one stay."""
        times, newest = self._times, self._times[-1]
        drop = min(
            range(1, len(times) - 1), key=lambda at: (times[at + 1] - times[at - 1]) / (newest - times[at - 1] + 1)
        )
        del self._times[drop], self._offsets[drop]


class GroupTopicLag(NamedTuple):
    """The lag of a group on one topic. `records` and `seconds` are by isolation level, None where that is not known."""

    shard: int
    group: str
    topic: str
    records: tuple[int | None, ...]
    seconds: tuple[float | None, ...]


def lag_of(
    name: tuple[int, str, str],
    committed: Mapping[int, int],
    ends: Mapping[Place, Ends],
    samples: Mapping[Place, EndSamples],
    now_ms: int,
) -> tuple[GroupTopicLag, list[Place]]:
    """The lag of committed offsets by partition, and the partitions of which it should be known since when.

    The records are those of all partitions, the seconds those of the partition where they are most. An end that is
    not known leaves the whole topic unknown: a sum without it would be too small.
    """
    topic = name[2]
    records: list[int | None] = [0, 0]
    seconds: list[float | None] = [0.0, 0.0]
    unknown: list[Place] = []
    for index, offset in committed.items():
        place = topic, index
        both = ends.get(place)
        if both is None:
            return GroupTopicLag(*name, (None, None), (None, None)), []
        age = _age_seconds(samples[place], offset, now_ms) if offset < both.high_watermark else 0.0
        if age is None:
            unknown.append(place)
        for level, end in enumerate(both):
            if offset < end:
                records[level] = (records[level] or 0) + end - offset
                so_far = seconds[level]
                seconds[level] = None if age is None or so_far is None else max(so_far, age)
    return GroupTopicLag(*name, tuple(records), tuple(seconds)), unknown


def _age_seconds(samples: EndSamples, offset: int, now_ms: int) -> float | None:
    """The age of a record. One that is older than all that is known has at least the age of that."""
    written = samples.written_ms(offset)
    if written is None:
        if not samples.is_seeded:
            return None
        written = samples.oldest_ms
    return max(0, now_ms - written) / 1000


class Shown:
    """The lags that are shown: those that were so before, then groups with members, then the greatest lag.

    A client that commits offsets for very many groups takes room that is left, and displaces none that is shown.
    """

    def __init__(self, before: frozenset[tuple[str, str]], count_max: int) -> None:
        self._before, self._count_max = before, count_max
        self._heap: list[tuple[bool, bool, int, int, GroupTopicLag]] = []
        self._total = 0

    def add(self, lag: GroupTopicLag, *, has_members: bool) -> None:
        """Consider a lag that is known."""
        self._total += 1
        is_kept = (lag.group, lag.topic) in self._before
        entry = (is_kept, has_members, lag.records[0] or 0, -self._total, lag)
        if len(self._heap) < self._count_max:
            heappush(self._heap, entry)
        else:
            heappushpop(self._heap, entry)

    @property
    def lags(self) -> list[GroupTopicLag]:
        return [entry[-1] for entry in self._heap]

    @property
    def omitted(self) -> int:
        return self._total - len(self._heap)
