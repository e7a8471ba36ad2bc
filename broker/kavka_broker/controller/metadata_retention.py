"""Deletes old snapshots of the metadata, and the log below the oldest one that is kept."""

from collections.abc import Sequence

from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.snapshot_files import SnapshotId
from kavka_broker.core.config.broker import BrokerConfig


def retain(log: MetadataLog, config: BrokerConfig, now_ms: int) -> list[SnapshotId]:
    """Delete snapshots over the bounds of size and age, but never the newest; returns those that are deleted."""
    kept = list(log.files.ids)
    deleted = []
    while len(kept) > 1 and _is_over_bounds(log, config, kept, now_ms):
        oldest = kept.pop(0)
        log.files.delete(oldest)
        deleted.append(oldest)
    if kept and kept[0].end_offset > log.start_offset:
        log.advance_start(kept[0].end_offset, now_ms)
    return deleted


def _is_over_bounds(log: MetadataLog, config: BrokerConfig, kept: Sequence[SnapshotId], now_ms: int) -> bool:
    size_bytes = log.size_bytes + sum(map(log.files.size_bytes, kept))
    size_bytes_max: int = config["metadata.max.retention.bytes"]
    age_ms_max: int = config["metadata.max.retention.ms"]
    return size_bytes > size_bytes_max or log.files.age_ms(kept[0], now_ms) > age_ms_max
