"""The window of a share partition, tiled by runs of offsets with one state: each offset is in exactly one run."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.share.state_batches import RecordState, StateBatch, as_restored

NOBODY: Final = ""


@dataclass(slots=True, eq=False)
class OffsetRun:
    """Offsets with one state. `pending` is the state that is being written down, by `change`. `span` is the size of the
    run that these offsets were part of when they had first been delivered too often to be delivered together.
    """

    first: int
    last: int
    state: RecordState
    count: int = 0
    member: str = NOBODY
    deadline_ms: float = 0
    pending: RecordState | None = None
    change: "Change | None" = None
    span: int = 0

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_free(self) -> bool:
        """Whether a fetch may acquire the records."""
        return self.state is RecordState.AVAILABLE and self.pending is None

    @property
    def is_locked(self) -> bool:
        """Whether a member holds the records, and has not said what became of them."""
        return self.state is RecordState.ACQUIRED and self.pending is None

    @property
    def is_settled(self) -> bool:
        """Whether the records are never delivered again."""
        return self.state.is_terminal and self.pending is None

    def is_like(self, other: "OffsetRun") -> bool:
        return (
            self.pending is None
            and other.pending is None
            and self.state is other.state
            and self.count == other.count
            and self.member == other.member
            and self.deadline_ms == other.deadline_ms
            and (self.span == other.span or self.state.is_terminal)
        )

    def part(self, first: int, last: int) -> "OffsetRun":
        """Return a run of these offsets, which is in the same change."""
        part = OffsetRun(
            first, last, self.state, self.count, self.member, self.deadline_ms, self.pending, self.change, self.span
        )
        if self.change is not None:
            self.change.runs.append(part)
        return part

    def mark(self, pending: RecordState, change: "Change") -> None:
        """Put the run into a change."""
        self.pending, self.change = pending, change
        change.runs.append(self)


class Change:
    """A change in its first phase: runs that are marked, and the states to be written down."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: list[OffsetRun] = []

    @property
    def batches(self) -> list[StateBatch]:
        """The states that the share coordinator has to know."""
        return [StateBatch(run.first, run.last, run.pending, run.count) for run in self.runs if run.pending is not None]


class ShareWindow:
    """The runs of offsets from `start_offset` up to `end_offset`, in order."""

    __slots__ = ("end_offset", "runs", "seam", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.seam = -1  # an offset that no run straddles: the start of the log
        self.runs: list[OffsetRun] = []

    def extend(self, last: int, state: RecordState, count: int = 0) -> None:
        """Let the window grow up to this offset."""
        if last >= self.end_offset:
            self.runs.append(OffsetRun(self.end_offset, last, state, count))
            self.end_offset = last + 1

    def cut(self, first: int, last: int) -> list[OffsetRun]:
        """Return the runs within these offsets, cut at both ends."""
        first, last = max(first, self.start_offset), min(last, self.end_offset - 1)
        if first > last:
            return []
        low = self._index(first)
        if self.runs[low].first < first:
            self._split(low, first)
            low += 1
        high = self._index(last)
        if self.runs[high].last > last:
            self._split(high, last + 1)
        return self.runs[low : high + 1]

    def restore(self, batch: StateBatch) -> None:
        """Let the window grow by offsets whose state was written down. Those before them may be fetched."""
        if batch.last_offset >= self.end_offset:
            self.extend(max(batch.first_offset, self.end_offset) - 1, RecordState.AVAILABLE)
            self.extend(batch.last_offset, as_restored(batch.delivery_state), batch.delivery_count)

    def within(self, first: int, last: int) -> list[OffsetRun]:
        """Return the runs that have some of these offsets, as they are."""
        first, last = max(first, self.start_offset), min(last, self.end_offset - 1)
        return self.runs[self._index(first) : self._index(last) + 1] if first <= last else []

    def head(self, run: OffsetRun, size: int) -> OffsetRun:
        """Return the first `size` records of a run, cut off from the rest."""
        if size < run.size:
            self._split(self._index(run.first), run.first + size)
        return run

    def join(self) -> None:
        """Join neighbours that are alike."""
        joined: list[OffsetRun] = []
        for run in self.runs:
            if joined and run.first != self.seam and joined[-1].is_like(run):
                joined[-1].last = run.last
            else:
                joined.append(run)
        self.runs = joined

    def advance(self) -> None:
        """Move the start over records that are never delivered again."""
        passed = 0
        for run in self.runs:
            if not run.is_settled:
                break
            passed += 1
            self.start_offset = run.last + 1
        del self.runs[:passed]

    def clip(self, end_offset: int) -> None:
        """Forget what is behind an offset."""
        if self.end_offset <= end_offset:
            return
        self.cut(end_offset, self.end_offset - 1)
        self.runs = [run for run in self.runs if run.last < end_offset]
        self.start_offset = min(self.start_offset, end_offset)
        self.end_offset = end_offset
        self.advance()

    def _index(self, offset: int) -> int:
        return bisect_right(self.runs, offset, key=lambda run: run.first) - 1

    def _split(self, index: int, offset: int) -> None:
        """Cut a run in two; the object keeps its first part."""
        run = self.runs[index]
        self.runs.insert(index + 1, run.part(offset, run.last))
        run.last = offset - 1
