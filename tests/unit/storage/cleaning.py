"""A compacted log, and a cleaning of it without threads."""

from dataclasses import replace
from typing import Any

from kavka_broker.core.cleaning.selection import DirtyRange, LogView, dirty_range
from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.storage.cleaning.run import Bounds, Cleaning, Outdated, Replacement, view
from kavka_broker.storage.cleaning.segment_swap import put_in_place
from kavka_broker.storage.log import Appended, Log, Origin
from tests.support.sim_disk import SimDisk
from tests.unit.storage.support import NOW_MS, SMALL

DAY_MS = 86_400_000
COMPACTED = replace(SMALL, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
AMPLE = Bounds(buffer_bytes_max=1 << 20, load_factor=0.9)


def put(log: Log, *pairs: tuple[str, str | None], epoch: int = 0, **batch: Any) -> Appended:
    """Append one batch of keys and values; None deletes."""
    sources = [(key.encode(), None if value is None else value.encode()) for key, value in pairs]
    made = build_batch(sources, **{"timestamp_ms": NOW_MS, **batch})
    return log.append_as_leader(memoryview(made), epoch, NOW_MS)


def end(log: Log, producer_id: int, kind: ControlType, producer_epoch: int = 0) -> Appended:
    """Append the marker of a transaction."""
    marker = build_marker(
        kind, producer_id=producer_id, producer_epoch=producer_epoch, coordinator_epoch=0, timestamp_ms=NOW_MS
    )
    return log.append_as_leader(memoryview(marker), 0, NOW_MS, Origin.COORDINATOR)


def disk_of(log: Log) -> SimDisk:
    assert isinstance(log.disk, SimDisk)
    return log.disk


def roll(log: Log) -> None:
    """Everything so far lies below the active segment, and is synced."""
    log.roll(NOW_MS)
    log.flush()


def range_of(
    log: Log, stable_offset: int | None = None, now_ms: int = NOW_MS, config: LogConfig | None = None
) -> DirtyRange:
    stable = log.log_end_offset if stable_offset is None else stable_offset
    seen = LogView(
        config or log.config,
        [view(segment) for segment in log.segments],
        log.log_start_offset,
        log.log_end_offset,
        log.state.cleaned_offset,
        stable,
        log.recovery_point,
    )
    return dirty_range(seen, now_ms)


def begin(log: Log, *, now_ms: int = NOW_MS, stable_offset: int | None = None, bounds: Bounds = AMPLE) -> Cleaning:
    stable = log.log_end_offset if stable_offset is None else stable_offset
    return Cleaning(log, range_of(log, stable, now_ms), stable, bounds, now_ms)


def carry_out(cleaning: Cleaning) -> None:
    """All slices, one after the other."""
    work = cleaning.work()
    for step in work:
        if isinstance(step, Replacement) and not put_in_place(cleaning.log, step.old, step.cleaned):
            work.close()
            raise Outdated
    cleaning.log.state.cleaned_offset = cleaning.figures.end_offset


def clean(log: Log, **how: Any) -> Cleaning:
    cleaning = begin(log, **how)
    carry_out(cleaning)
    return cleaning
