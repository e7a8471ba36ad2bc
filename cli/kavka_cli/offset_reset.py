"""Where a consumer group begins again: the offset of each partition for a moment or a number, within its log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kavka_operator.domain import units

Key = tuple[str, int]
Offsets = Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class Move:
    """A partition of a group, with the offset that is committed, the one to be committed, and the end of its log."""

    topic: str
    partition: int
    committed: int | None
    offset: int
    end: int

    @property
    def key(self) -> Key:
        return self.topic, self.partition

    @property
    def lag(self) -> int:
        return self.end - self.offset


def moves_to(wanted: Offsets, committed: Offsets, starts: Offsets, ends: Offsets) -> list[Move]:
    """Return the move of each partition: an offset outside of its log becomes the nearest one within, and a negative
    one, as where no record is that young, the end. Partitions whose log is not known are left out.
    """
    return [
        Move(*key, committed.get(key), ends[key] if offset < 0 else max(starts[key], min(offset, ends[key])), ends[key])
        for key, offset in sorted(wanted.items())
        if key in starts and key in ends
    ]


def rows(group: str, moves: list[Move]) -> Iterator[list[str]]:
    """Give a line for each partition, below a head."""
    yield ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "NEW", "LAG"]
    for move in moves:
        committed = "none" if move.committed is None else units.exact(move.committed)
        yield [group, move.topic, str(move.partition), committed, units.exact(move.offset), units.exact(move.lag)]


def documents(moves: list[Move]) -> Iterator[dict[str, str | int | None]]:
    """Give the moves as programs read them."""
    for move in moves:
        yield {
            "topic": move.topic,
            "partition": move.partition,
            "committedOffset": move.committed,
            "newOffset": move.offset,
            "lag": move.lag,
        }
