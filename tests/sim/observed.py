"""What every replica's log holds, seen from outside after each step: the ground that the invariants stand on.

A view of a log is the list of its batches, each known by leader epoch, first offset and checksum. It grows by reading
the headers that were added; after a truncation it is made anew. Views of processes that died stay as their disks were.

`Truth` is what one partition has promised to keep: the batches below the highest high watermark that a leader of it
ever had, with the epoch of that leader.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from tests.sim.history import Place

by_end = attrgetter("end_offset")


class Written(NamedTuple):
    """One batch, as it stands in a log."""

    base_offset: int
    end_offset: int
    epoch: int
    crc: int


@dataclass(slots=True)
class View:
    """One replica's log."""

    node_id: int
    place: Place
    batches: list[Written] = field(default_factory=list)
    truncations: int = 0
    start_offset: int = 0

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start_offset

    def below(self, offset: int) -> list[Written]:
        """The batches that end at or below `offset`."""
        return self.batches[: bisect_left(self.batches, offset + 1, key=by_end)]

    def has(self, written: Written) -> bool:
        """Whether it stands here as well; what a snapshot stands for is believed."""
        return written.end_offset <= self.start_offset or self.at(written) == written

    def at(self, written: Written) -> Written | None:
        """What stands where `written` stands elsewhere."""
        index = bisect_left(self.batches, written.end_offset, key=by_end)
        return self.batches[index] if index < len(self.batches) else None

    def follow(self, log: Any, truncations: int) -> list[Written]:
        """Catch up with the log; the batches that are new to this view."""
        if truncations != self.truncations or log.log_end_offset < self.end_offset:
            self.batches, self.truncations = [], truncations
            self.start_offset = log.segments[0].base_offset
        added = list(headers_from(log, self.end_offset))
        self.batches += added
        return added


def headers_from(log: Any, offset: int) -> Iterator[Written]:
    """The batches of a log from an offset on, read past its caches."""
    for segment in log.segments_from(offset):
        for _, header in segment.batches(segment.offsets.position_before(offset)):
            if header.base_offset >= offset:
                yield Written(header.base_offset, header.next_offset, header.leader_epoch, header.crc)


class Committed(NamedTuple):
    """A batch that must never be lost, and the epoch in which it became so."""

    batch: Written
    epoch: int


@dataclass(slots=True)
class Truth:
    """What one partition has promised."""

    place: Place
    committed: list[Committed] = field(default_factory=list)
    # Every batch that was ever written, by epoch and first offset; and who has had it.
    written: dict[tuple[int, int], Written] = field(default_factory=dict)
    holders: dict[Written, dict[int, None]] = field(default_factory=dict)
    leaders: dict[int, int] = field(default_factory=dict)

    @property
    def end_offset(self) -> int:
        return self.committed[-1].batch.end_offset if self.committed else 0
