"""`__cluster_metadata-0`: the log of all decisions, with its snapshots and the quorum's memory, in Kafka's files.

It is a log like any other, except that what is acknowledged is synced, and that its beginning goes when a snapshot
stands for it, not with time. Opening it always checks what lies behind the newest snapshot: a torn tail is cut off.
"""

import os
from collections.abc import Iterator
from typing import Final

from kavka_broker.controller.batches import read_batch
from kavka_broker.controller.format import METADATA_DIRECTORY, bootstrap_snapshot
from kavka_broker.controller.snapshots import BOOTSTRAP, SnapshotId, Snapshots, read
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.topic import LONG_MAX, LogConfig
from kavka_broker.core.raft.quorum_state import FILE_NAME, QuorumState, format_state, parse_state
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.uuids import ONE, to_text
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.log import Log
from kavka_broker.storage.names import PARTITION_METADATA

#: The largest batch that is written, and so the largest decision (Kafka's bound).
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
READ_BYTES: Final = 1024 * 1024
TIMESTAMPS_ANY_MS: Final = LONG_MAX


class MetadataLog:
    """The controller's own log. Everything but `flush` and `save_state` is called on the loop."""

    def __init__(self, disk: Disk, directory: str, log: Log, snapshots: Snapshots, config: BrokerConfig) -> None:
        self._disk = disk
        self._directory = directory
        self._log = log
        self._config = config
        self.snapshots = snapshots

    @classmethod
    def open(cls, disk: Disk, config: BrokerConfig, *, now_ms: int) -> "MetadataLog":
        """Open the log in the metadata directory, or begin it there."""
        directory = os.path.join(config.metadata_log_dir, METADATA_DIRECTORY)
        disk.make_directory(directory)
        snapshots = Snapshots(disk, directory)
        newest = snapshots.newest()
        start = newest.end_offset if newest is not None else 0
        log = Log.open(disk, directory, log_config(config), recover=True, recovery_point=start, now_ms=now_ms)
        if log.log_end_offset < start:
            # What the snapshot stands for was synced before it; a log that ends earlier lost its files.
            log.start_at(start)
        identity = os.path.join(directory, PARTITION_METADATA)
        if not disk.exists(identity):
            disk.write_file(identity, f"version: 0\ntopic_id: {to_text(ONE)}".encode())
        return cls(disk, directory, log, snapshots, config)

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def latest_epoch(self) -> int:
        return self._log.latest_epoch

    @property
    def size_bytes(self) -> int:
        return self._log.size_bytes

    def append(self, batch: bytearray, now_ms: int) -> None:
        """Append a batch that carries its offsets. Raises BrokerError and appends nothing where the disk refuses."""
        self._log.append_as_follower(memoryview(batch), now_ms)

    def flush(self) -> None:
        """Sync. Blocks; called in a thread, beside appends."""
        self._log.flush()

    def messages(self, offset: int) -> Iterator[tuple[int, Message]]:
        """Every record from an offset to the end, control records among them."""
        while offset < self.end_offset:
            chunk = self._log.read(offset, READ_BYTES)
            assert chunk.size_bytes, f"the metadata log has nothing at {offset} and ends at {self.end_offset}"
            for part in chunk.parts:
                for header, batch in split_batches(part):
                    # The first batch may begin below the offset that was asked for.
                    yield from ((at, message) for at, message in read_batch(batch) if at >= offset)
                    offset = header.next_offset

    def load_state(self) -> QuorumState:
        path = os.path.join(self._directory, FILE_NAME)
        return parse_state(self._disk.read_file(path).decode()) if self._disk.exists(path) else QuorumState()

    def save_state(self, state: QuorumState) -> None:
        """Blocks until it would survive a loss of power."""
        self._disk.write_file(os.path.join(self._directory, FILE_NAME), format_state(state).encode())

    def bootstrap_records(self) -> list[Message]:
        """What a new cluster begins with: what `format` left, or the levels of this version."""
        path = os.path.join(self._config.metadata_log_dir, BOOTSTRAP)
        data = self._disk.read_file(path) if self._disk.exists(path) else bootstrap_snapshot(0)
        return list(read(data))

    def retain(self, now_ms: int) -> list[SnapshotId]:
        """Delete snapshots that are over the bounds of size and age, and the log below the oldest that stays."""
        kept = self.snapshots.ids()
        deleted = []
        while len(kept) > 1 and self._is_over_bounds(kept, now_ms):
            oldest = kept.pop(0)
            self.snapshots.delete(oldest)
            deleted.append(oldest)
        if kept and kept[0].end_offset > self.start_offset:
            self._log.advance_start(kept[0].end_offset)
            self._log.delete_expired(now_ms, self.end_offset)
            self._log.remove_deleted()
        return deleted

    def _is_over_bounds(self, kept: list[SnapshotId], now_ms: int) -> bool:
        size_bytes = self.size_bytes + sum(map(self.snapshots.size_bytes, kept))
        size_bytes_max: int = self._config["metadata.max.retention.bytes"]
        age_ms_max: int = self._config["metadata.max.retention.ms"]
        return size_bytes > size_bytes_max or self.snapshots.age_ms(kept[0], now_ms) > age_ms_max

    def close(self) -> None:
        self._log.close()


def log_config(config: BrokerConfig) -> LogConfig:
    """Nothing is deleted by time or size, and nothing refused for its timestamp: only snapshots move the start."""
    return LogConfig(
        segment_bytes=config["internal.metadata.log.segment.bytes"] or config["metadata.log.segment.bytes"],
        segment_ms=config["metadata.log.segment.ms"],
        retention_ms=-1,
        retention_bytes=-1,
        max_message_bytes=BATCH_BYTES_MAX,
        message_timestamp_after_max_ms=TIMESTAMPS_ANY_MS,
    )
