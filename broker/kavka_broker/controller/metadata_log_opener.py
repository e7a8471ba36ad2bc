"""Opens the metadata log, or creates it, and checks all of it: a torn tail is cut off.

Where what was synced once has changed, `MetadataLog.damage` says so. Below the newest snapshot that is mended at once:
the log then starts where the snapshot ends.
"""

import os
from typing import Final

from kavka_broker.controller.format import METADATA_DIRECTORY
from kavka_broker.controller.metadata_log import BATCH_BYTES_MAX, MetadataLog
from kavka_broker.controller.quorum_state_file import QuorumStateFile
from kavka_broker.controller.snapshot_files import SnapshotId, Snapshots
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.topic import LONG_MAX, LogConfig
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.uuids import ONE, to_text
from kavka_broker.storage import recovery
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.file_names import PARTITION_METADATA
from kavka_broker.storage.log import Log

log = get("controller")

TIMESTAMPS_ANY_MS: Final = LONG_MAX


def open_metadata_log(disk: Disk, config: BrokerConfig, *, now_ms: int) -> MetadataLog:
    """Open the log in the metadata directory, or create it."""
    directory = os.path.join(config.metadata_log_dir, METADATA_DIRECTORY)
    disk.make_directory(directory)
    snapshots, promises = Snapshots(disk, directory), QuorumStateFile(disk, directory)
    newest, oldest = snapshots.newest(), next(iter(snapshots.ids), None)
    records = recovery.open_log(
        disk,
        directory,
        _log_config(config),
        recover=True,
        # A crash may lose the record of what was synced. Bad bytes below a snapshot are damage all the same, not a
        # torn end: records behind them must not be cut off.
        recovery_point=max(promises.synced_offset, 0 if newest is None else newest.end_offset),
        log_start_offset=0 if oldest is None else oldest.end_offset,
        now_ms=now_ms,
        keeps_end=False,  # the leader sends the torn end again
        topic_id=ONE,  # also before its file is there, so that the first stop writes down whose producers they are
    )
    opened = MetadataLog(disk, records, snapshots, promises)
    _check(opened, records, newest)
    promises.is_broken = opened.damage is not None or opened.end_offset < promises.synced_offset
    if newest is not None and _is_superseded(records, newest):
        opened.start_behind(newest)
    snapshots.delete_below(opened.start_offset)
    identity = os.path.join(directory, PARTITION_METADATA)
    if not disk.exists(identity):
        disk.write_file(identity, f"version: 0\ntopic_id: {to_text(ONE)}".encode())
    return opened


def _check(opened: MetadataLog, records: Log, newest: SnapshotId | None) -> None:
    """Read the whole log. Damage below a snapshot does no harm: the log then starts where the snapshot ends."""
    opened.damage = _first_damage(opened, opened.start_offset)
    if opened.damage is None or newest is None or opened.damage[0] >= newest.end_offset:
        return
    at, reason = opened.damage
    log.warning("metadata.log.damaged", offset=at, reason=reason, snapshot=newest.end_offset)
    opened.damage = _first_damage(opened, newest.end_offset)
    if newest.end_offset <= opened.end_offset:
        records.advance_start(newest.end_offset)


def _first_damage(opened: MetadataLog, offset: int) -> tuple[int, str] | None:
    try:
        for header, _ in opened.batches(offset):
            if header.base_offset > offset:
                return offset, f"the batch at offset {offset} is missing"
            offset = header.next_offset
    except BrokerError as problem:
        return offset, str(problem)
    return None


def _is_superseded(records: Log, snapshot: SnapshotId) -> bool:
    """Whether the log lacks records of the snapshot, all of which are committed.

    A power loss may have cost the log its end. Or the snapshot was downloaded from the leader, and the process died
    before it cut the log: then records of older epochs may differ from the leader's, beyond the snapshot too.
    """
    if records.log_end_offset == snapshot.end_offset == records.log_start_offset:
        return False
    return (snapshot.epoch, snapshot.end_offset) > (records.epochs.latest, records.log_end_offset)


def _log_config(config: BrokerConfig) -> LogConfig:
    """A configuration that deletes nothing by time or size and accepts any timestamp: snapshots move the start."""
    return LogConfig(
        segment_bytes=config["internal.metadata.log.segment.bytes"] or config["metadata.log.segment.bytes"],
        segment_ms=config["metadata.log.segment.ms"],
        retention_ms=-1,
        retention_bytes=-1,
        max_message_bytes=BATCH_BYTES_MAX,
        message_timestamp_after_max_ms=TIMESTAMPS_ANY_MS,
    )
