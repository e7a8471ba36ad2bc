"""Which log is cleaned next, up to where, and which of its segments become one."""

from typing import Any

import pytest

from kavka_broker.core.cleaning.selection import (
    OFFSETS_MAX,
    DirtyRange,
    LogView,
    SegmentView,
    choose,
    dirty_range,
    grouped,
)
from kavka_broker.core.config.topic import LogConfig

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS


def segment(base_offset: int, size_bytes: int = 100, first_ms: int = NOW_MS, largest_ms: int = NOW_MS) -> SegmentView:
    return SegmentView(base_offset, size_bytes, 8, first_ms, largest_ms)


def log_of(*segments: SegmentView, config: LogConfig | None = None, **offsets: int) -> LogView:
    """Ten records a segment, all of them stable and synced unless said otherwise."""
    end_offset = segments[-1].base_offset + 10
    defaults = {"log_start_offset": 0, "log_end_offset": end_offset, "cleaned_offset": 0}
    limits = {"stable_offset": end_offset, "synced_offset": end_offset}
    return LogView(config or LogConfig(), segments, **{**defaults, **limits, **offsets})


THREE = (segment(0), segment(10), segment(20))


def span(view: LogView) -> tuple[int, int, int, int]:
    found = dirty_range(view, NOW_MS)
    return found.first_dirty_offset, found.first_uncleanable_offset, found.clean_bytes, found.cleanable_bytes


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ({}, (0, 20, 0, 200)),  # never the active one
        ({"cleaned_offset": 10}, (10, 20, 100, 100)),
        ({"cleaned_offset": 20}, (20, 20, 200, 0)),
        ({"cleaned_offset": 15}, (15, 20, 200, 100)),  # a map was full: its segment counts on both sides, as in Kafka
        ({"stable_offset": 19}, (0, 10, 0, 100)),
        ({"stable_offset": 20}, (0, 20, 0, 200)),
        ({"synced_offset": 10}, (0, 10, 0, 100)),
        ({"stable_offset": 5, "cleaned_offset": 10}, (10, 10, 100, 0)),
        ({"log_start_offset": 12, "cleaned_offset": 3}, (12, 20, 200, 100)),
        ({"cleaned_offset": 31}, (0, 20, 0, 200)),  # behind the end: the log was cut
    ],
)
def test_the_part_that_would_be_cleaned(offsets: dict[str, Any], expected: tuple[int, ...]) -> None:
    assert span(log_of(*THREE, **offsets)) == expected


def test_the_active_segment_alone_is_nothing_to_clean() -> None:
    assert span(log_of(segment(0))) == (0, 0, 0, 0)


def test_young_records_are_safe() -> None:
    config = LogConfig(min_compaction_lag_ms=DAY_MS)
    old, young = segment(0, largest_ms=NOW_MS - DAY_MS), segment(10, largest_ms=NOW_MS - DAY_MS + 1)
    assert span(log_of(old, young, segment(20), config=config)) == (0, 10, 0, 100)
    assert span(log_of(young, old._replace(base_offset=20), segment(30), config=config))[1] == 10


def test_a_log_that_has_waited_too_long_needs_no_ratio() -> None:
    config = LogConfig(max_compaction_lag_ms=DAY_MS, min_cleanable_dirty_ratio=1.0)
    for age_ms, is_due in ((DAY_MS, False), (DAY_MS + 1, True)):
        view = log_of(segment(0), segment(10, first_ms=NOW_MS - age_ms), segment(20), config=config, cleaned_offset=10)
        assert dirty_range(view, NOW_MS).is_due(config) is is_due
    clean_one = log_of(segment(0, first_ms=1), segment(10), segment(20), config=config, cleaned_offset=10)
    assert not dirty_range(clean_one, NOW_MS).is_due(config)


def ranges(*shares: tuple[int, int], **config: Any) -> list[tuple[DirtyRange, LogConfig]]:
    return [(DirtyRange(0, 0, clean, dirty, 0), LogConfig(**config)) for clean, dirty in shares]


def test_the_dirtiest_goes_first_if_it_is_dirty_enough() -> None:
    assert choose(ranges((100, 101), (100, 300), (100, 300))) == 1
    assert choose(ranges((100, 100))) is None, "the ratio has to be above the least"
    assert choose(ranges((0, 0), min_cleanable_dirty_ratio=0.0)) is None
    assert choose([]) is None
    overdue = (DirtyRange(0, 0, 900, 1, 1), LogConfig())
    assert choose([overdue]) == 0
    assert choose([overdue, *ranges((10, 90))]) == 1


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([100, 100, 100], [range(3)]),
        ([300, 100, 200, 1], [range(1), range(1, 3), range(3, 4)]),
        ([900, 900], [range(1), range(1, 2)]),  # larger than a segment may be now
        ([0, 0, 300], [range(3)]),
        ([200, 200, 100, 300], [range(1), range(1, 3), range(3, 4)]),
        ([], []),
    ],
)
def test_neighbours_come_together_up_to_a_segments_size(sizes: list[int], expected: list[range]) -> None:
    views = [segment(10 * index, size) for index, size in enumerate(sizes)]
    assert grouped(views, 10 * len(sizes), bytes_max=300, index_bytes_max=1000, group_max=100) == expected


def test_neighbours_come_together_as_far_as_indexes_can_say() -> None:
    views = [segment(0), segment(10), segment(OFFSETS_MAX), segment(OFFSETS_MAX + 10)]
    limits: dict[str, int] = {"bytes_max": 10_000, "index_bytes_max": 1000, "group_max": 100}
    assert grouped(views, OFFSETS_MAX + 20, **limits) == [range(2), range(2, 4)]
    assert grouped(views[:3], OFFSETS_MAX + 1, **limits) == [range(3)]
    assert grouped(views, OFFSETS_MAX + 20, **{**limits, "index_bytes_max": 8}) == [range(i, i + 1) for i in range(4)]
    assert grouped(views[:3], OFFSETS_MAX, **{**limits, "group_max": 2}) == [range(2), range(2, 3)]


def test_neighbours_come_together_up_to_the_size_of_an_index() -> None:
    views = [segment(10 * index, 1) for index in range(5)]  # of 8 bytes of index each
    assert grouped(views, 50, bytes_max=300, index_bytes_max=16, group_max=100) == [range(2), range(2, 4), range(4, 5)]
    assert grouped(views, 50, bytes_max=300, index_bytes_max=100, group_max=2) == [range(2), range(2, 4), range(4, 5)]


def test_a_segment_without_a_time_is_not_overdue() -> None:
    config = LogConfig(max_compaction_lag_ms=1)
    assert dirty_range(log_of(segment(0, first_ms=0), segment(10), config=config), NOW_MS).overdue_ms == 0
    assert dirty_range(log_of(segment(0, first_ms=1), segment(10), config=config), NOW_MS).overdue_ms == NOW_MS - 2
