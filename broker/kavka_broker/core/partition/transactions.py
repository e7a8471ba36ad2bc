"""The transactions of a partition that are not settled: from what they wrote on, nothing is stable yet.

A transaction is open from its first record to its marker, COMMIT or ABORT. A marker that could still be lost settles
nothing either, so until the high watermark has passed it the transaction counts as unsettled (KIP-98). The last stable
offset is the first offset of the oldest unsettled one, or the high watermark where that comes earlier.

Transactions begin in the order of their offsets, so the first of the open ones is the oldest.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

NO_OFFSET: Final = -1


class Ended(NamedTuple):
    """A transaction with its marker. `stable_offset` is the last stable offset after it, once that is replicated."""

    producer_id: int
    first_offset: int
    last_offset: int  # the offset of the marker itself
    stable_offset: int
    is_aborted: bool


class Transactions:
    """Transactions that are open, or ended above the high watermark. `first_unstable_offset` is NO_OFFSET for none."""

    __slots__ = ("_doubtful_offset", "_open", "ended", "first_unstable_offset")

    def __init__(self) -> None:
        self._doubtful_offset = NO_OFFSET
        self._open: dict[int, int] = {}  # first offset by producer id, the oldest first
        self.ended: list[Ended] = []  # not replicated yet, in the order of their markers
        self.first_unstable_offset = NO_OFFSET

    def __len__(self) -> int:
        return len(self._open)

    @property
    def first_open_offset(self) -> int:
        """Offset where the oldest transaction without a marker begins; NO_OFFSET for none."""
        return next(iter(self._open.values()), NO_OFFSET)

    def is_open(self, producer_id: int) -> bool:
        return producer_id in self._open

    def begin(self, producer_id: int, first_offset: int) -> None:
        """Note the first record of a transaction."""
        assert producer_id not in self._open, f"producer {producer_id} is in a transaction already"
        assert first_offset > next(reversed(self._open.values()), NO_OFFSET), "transactions begin in their order"
        self._open[producer_id] = first_offset
        if self.first_unstable_offset == NO_OFFSET:
            self.first_unstable_offset = first_offset

    def end(self, producer_id: int, marker_offset: int, *, is_aborted: bool) -> Ended | None:
        """End a transaction by its marker; None where none is open: coordinators repeat markers after a failure."""
        first_offset = self._open.pop(producer_id, NO_OFFSET)
        if first_offset == NO_OFFSET:
            return None
        open_offset = self.first_open_offset
        assert marker_offset > first_offset, f"a marker at {marker_offset} of what began at {first_offset}"
        assert NO_OFFSET < self.first_unstable_offset <= first_offset, f"{first_offset} was open, and was stable"
        assert not self.ended or self.ended[-1].last_offset < marker_offset, "markers come in their order"
        stable_offset = marker_offset + 1 if open_offset == NO_OFFSET else open_offset
        ended = Ended(producer_id, first_offset, marker_offset, stable_offset, is_aborted)
        self.ended.append(ended)
        return ended

    def replicated(self, high_watermark: int) -> None:
        """Forget ended transactions whose markers are below `high_watermark`: such markers stay forever."""
        assert high_watermark >= 0, high_watermark
        settled = 0
        for ended in self.ended:
            if ended.last_offset >= high_watermark:
                break
            settled += 1
        if settled:
            del self.ended[:settled]
            self._find_first()

    def doubt_from(self, offset: int) -> None:
        """Let nothing from `offset` on be stable: the log has lost markers of transactions that are forgotten here."""
        assert offset >= 0, offset
        self._doubtful_offset = offset
        self._find_first()

    def replace(self, opened: Iterable[tuple[int, int]]) -> None:
        """Take up the open transactions of a snapshot: producer ids and first offsets."""
        self._open = dict(sorted(opened, key=lambda transaction: transaction[1]))
        self.ended.clear()
        self._find_first()

    def _find_first(self) -> None:
        unstable = [ended.first_offset for ended in self.ended]
        if self._doubtful_offset != NO_OFFSET:
            unstable.append(self._doubtful_offset)
        if self._open:
            unstable.append(self.first_open_offset)
        self.first_unstable_offset = min(unstable, default=NO_OFFSET)
