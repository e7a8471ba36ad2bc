"""Which log is cleaned next, and which part of it.

A compacted log has a clean part, which an earlier run has been over, a dirty part behind it, and a part that cannot be
cleaned yet:

    log start      first dirty                first uncleanable       end
    |  clean          |  cleanable                 |  active, unstable, young

- The active segment is never cleaned, nor one that reaches beyond the last stable offset: what is not committed may go
  back, and nobody knows yet which open transactions end well. Nor one that is not synced: the one that would take its
  place is.
- Nor, with `min.compaction.lag.ms`, a segment with a record that is younger, and what follows it.
- The dirty part's share of bytes decides: the log with the largest goes first, if it is above
  `min.cleanable.dirty.ratio`. A log whose oldest dirty segment is older than `max.compaction.lag.ms` needs no ratio.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import lt
from typing import NamedTuple

from kavka_broker.core.config.topic import LogConfig


class SegmentView(NamedTuple):
    """A segment, as far as the choice needs it. Timestamps are -1 where it has none."""

    base_offset: int
    size_bytes: int
    index_bytes: int  # of the larger of its two indexes
    first_timestamp_ms: int
    largest_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class LogView:
    """A log, as far as the choice needs it. `segments` has at least the active one, which is the last."""

    config: LogConfig
    segments: Sequence[SegmentView]
    log_start_offset: int
    log_end_offset: int
    cleaned_offset: int  # where an earlier run has stopped
    stable_offset: int
    synced_offset: int

    def __post_init__(self) -> None:
        assert 0 <= self.log_start_offset <= self.log_end_offset, f"{self.log_start_offset} to {self.log_end_offset}"
        assert self.segments, "a log has an active segment"


@dataclass(frozen=True, slots=True)
class DirtyRange:
    """The part of a log that a run would clean, and its sizes."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int  # how long ago `max.compaction.lag.ms` has passed; 0 where it has not

    def __post_init__(self) -> None:
        assert self.first_dirty_offset >= 0, self
        assert self.clean_bytes >= 0, self
        assert self.cleanable_bytes >= 0, self
        assert self.overdue_ms >= 0, self

    @property
    def ratio(self) -> float:
        total_bytes = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total_bytes if total_bytes else 0.0

    def is_due(self, config: LogConfig) -> bool:
        """Whether the log is worth a run, or must have one."""
        if not self.cleanable_bytes:
            return False
        return self.overdue_ms > 0 or self.ratio > config.min_cleanable_dirty_ratio


def dirty_range(view: LogView, now_ms: int) -> DirtyRange:
    """Give the part of a log that a run would clean now; its `cleanable_bytes` are 0 where there is none."""
    first_dirty = _first_dirty(view)
    bases = [segment.base_offset for segment in view.segments]
    assert all(map(lt, bases, bases[1:])), f"the segments begin at {bases}"
    first_uncleanable = max(first_dirty, _first_uncleanable(view, bases, first_dirty, now_ms))
    # A segment is cleaned as a whole or not at all.
    end = min(max(0, bisect_right(bases, first_uncleanable) - 1), len(bases) - 1)
    begin = max(0, bisect_right(bases, first_dirty) - 1)
    clean = view.segments[: bisect_left(bases, first_dirty)]
    return DirtyRange(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=bases[end],
        clean_bytes=sum(segment.size_bytes for segment in clean),
        cleanable_bytes=sum(segment.size_bytes for segment in view.segments[begin:end]),
        overdue_ms=_overdue_ms(view, begin, end, now_ms),
    )


def _first_dirty(view: LogView) -> int:
    """Offset where the last run has stopped; the log's start where that offset lies outside the log."""
    if view.log_start_offset <= view.cleaned_offset <= view.log_end_offset:
        return view.cleaned_offset
    return view.log_start_offset


def _first_uncleanable(view: LogView, bases: Sequence[int], first_dirty: int, now_ms: int) -> int:
    limits = [view.stable_offset, view.synced_offset, bases[-1]]
    lag_ms = view.config.min_compaction_lag_ms
    if lag_ms > 0:
        begin = max(0, bisect_right(bases, first_dirty) - 1)
        young = (segment for segment in view.segments[begin:-1] if segment.largest_timestamp_ms > now_ms - lag_ms)
        limits.extend(segment.base_offset for segment in young)
    return min(limits)


def _overdue_ms(view: LogView, begin: int, end: int, now_ms: int) -> int:
    first_times = [segment.first_timestamp_ms for segment in view.segments[begin:end] if segment.first_timestamp_ms > 0]
    clean_until_ms = now_ms - view.config.max_compaction_lag_ms
    return max(0, clean_until_ms - min(first_times, default=clean_until_ms))


def choose(ranges: Iterable[tuple[DirtyRange, LogConfig]]) -> int | None:
    """Choose the log to clean: the index of the highest ratio, the first of several that are equal; None for none."""
    due = [(index, dirty) for index, (dirty, config) in enumerate(ranges) if dirty.is_due(config)]
    return max(due, key=lambda indexed: indexed[1].ratio)[0] if due else None


def grouped(
    segments: Sequence[SegmentView], end_offset: int, *, bytes_max: int, index_bytes_max: int, group_max: int
) -> list[range]:
    """Group neighbouring segments that become one: as many as fit its size, its indexes and the offsets in these.

    `end_offset` is where the last of `segments` ends. At most `group_max` of them come together.
    """
    assert group_max >= 1, group_max
    assert not segments or segments[-1].base_offset <= end_offset, f"{segments[-1]} ends at {end_offset}"
    ends = [segment.base_offset for segment in segments[1:]] + [end_offset]
    groups: list[range] = []
    begin = size_bytes = index_bytes = 0
    for index, segment in enumerate(segments):
        fits = (
            index - begin < group_max
            and size_bytes + segment.size_bytes <= bytes_max
            and index_bytes + segment.index_bytes <= index_bytes_max
            and ends[index] - 1 - segments[begin].base_offset <= OFFSETS_MAX
        )
        if not fits and index > begin:
            groups.append(range(begin, index))
            begin, size_bytes, index_bytes = index, 0, 0
        size_bytes += segment.size_bytes
        index_bytes += segment.index_bytes
    if segments:
        groups.append(range(begin, len(segments)))
    assert sum(map(len, groups)) == len(segments), f"{groups} are not all of {len(segments)} segments"
    return groups


#: An index holds offsets relative to its segment's first as int32.
OFFSETS_MAX = 2**31 - 1
