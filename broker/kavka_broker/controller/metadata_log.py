"""`__cluster_metadata-0`: the log of all decisions, with its snapshots and the quorum's memory, in Kafka's files.

It is a log like any other, except that what is acknowledged is synced, and that its beginning goes when a snapshot
stands for it, not with time: it begins where its oldest snapshot ends. Opening it checks all of it: a torn tail is cut
off. Where what was synced once has changed, `damage` says so; below the newest snapshot that is mended at once.

To the rules of the quorum it is a `LogView`; what they decide about it comes back as calls of the other methods.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from kavka_broker.controller.format import METADATA_DIRECTORY, bootstrap_snapshot
from kavka_broker.controller.metadata_batches import read_batch
from kavka_broker.controller.quorum_state_file import QuorumStateFile
from kavka_broker.controller.snapshot_files import BOOTSTRAP, SnapshotId, Snapshots, read
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.topic import LONG_MAX, LogConfig
from kavka_broker.core.raft.quorum_state import QuorumState, UnreadableState
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.message import Buffer, Message
from kavka_broker.protocol.records.batch import BatchHeader, split_batches
from kavka_broker.protocol.uuids import ONE, to_text
from kavka_broker.storage import recovery
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.file_names import PARTITION_METADATA
from kavka_broker.storage.log import Log
from kavka_broker.storage.retention import delete_expired

log = get("controller")

#: The largest batch that is written, and so the largest decision (this is Kafka's bound).
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
READ_BYTES: Final = 1024 * 1024
TIMESTAMPS_ANY_MS: Final = LONG_MAX


class MetadataLog:
    """The controller's own log. Everything but `flush` and `save_state` is called on the loop."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        log: Log,
        snapshots: Snapshots,
        promises: QuorumStateFile,
        config: BrokerConfig,
    ) -> None:
        self.disk = disk
        self._directory = directory
        self._log = log
        self._config = config
        self.files = snapshots
        self.promises = promises
        # The offset of the first damaged batch, and what is wrong with it.
        self.damage: tuple[int, str] | None = None
        log.durability.on_recovery_point_lowered = promises.forget_synced

    @classmethod
    def open(cls, disk: Disk, config: BrokerConfig, *, now_ms: int) -> "MetadataLog":
        """Open the log in the metadata directory, or create it."""
        directory = os.path.join(config.metadata_log_dir, METADATA_DIRECTORY)
        disk.make_directory(directory)
        snapshots, promises = Snapshots(disk, directory), QuorumStateFile(disk, directory)
        newest, oldest = snapshots.newest(), next(iter(snapshots.ids), None)
        records = recovery.open_log(
            disk,
            directory,
            log_config(config),
            recover=True,
            # A crash may lose the record of what was synced. Bad bytes below a snapshot are damage all the same, not a
            # torn end: records behind them must not be cut off.
            recovery_point=max(promises.synced_offset, 0 if newest is None else newest.end_offset),
            log_start_offset=0 if oldest is None else oldest.end_offset,
            now_ms=now_ms,
            keeps_end=False,  # the leader sends the torn end again
            topic_id=ONE,  # also before its file is there, so that the first stop writes down whose producers they are
        )
        opened = cls(disk, directory, records, snapshots, promises, config)
        opened._check(newest)
        promises.is_broken = opened.damage is not None or opened.end_offset < promises.synced_offset
        if newest is not None and opened._is_superseded_by(newest):
            opened.start_behind(newest)
        opened.drop_superseded()
        identity = os.path.join(directory, PARTITION_METADATA)
        if not disk.exists(identity):
            disk.write_file(identity, f"version: 0\ntopic_id: {to_text(ONE)}".encode())
        return opened

    def _check(self, newest: SnapshotId | None) -> None:
        """Read the whole log. Damage below a snapshot does no harm: the log then starts where the snapshot ends."""
        self.damage = self._first_damage(self.start_offset)
        if self.damage is None or newest is None or self.damage[0] >= newest.end_offset:
            return
        log.warning("metadata.log.damaged", offset=self.damage[0], reason=self.damage[1], snapshot=newest.end_offset)
        self.damage = self._first_damage(newest.end_offset)
        if newest.end_offset <= self.end_offset:
            self._log.advance_start(newest.end_offset)

    def _first_damage(self, offset: int) -> tuple[int, str] | None:
        try:
            for header, _ in self.batches(offset):
                if header.base_offset > offset:
                    return offset, f"the batch at offset {offset} is missing"
                offset = header.next_offset
        except BrokerError as problem:
            return offset, str(problem)
        return None

    def cut_damage(self) -> None:
        """Cut off the damage and all records behind it: other voters have them."""
        assert self.damage is not None
        offset, self.damage = self.damage[0], None
        if offset == self.start_offset:
            # The rest of the log is older than the snapshot at its start, and may end before it.
            self._log.start_at(offset)
        else:
            self._log.truncate_to(offset)

    @property
    def promised_offset(self) -> int:
        """The offset up to which other voters rely on this log; it ends below only if the disk has lost records."""
        return self.promises.synced_offset

    def _is_superseded_by(self, snapshot: SnapshotId) -> bool:
        """Whether the log lacks records of the snapshot, all of which are committed.

        A power loss may have cost the log its end. Or the snapshot was downloaded from the leader, and the process died
        before it cut the log: then records of older epochs may differ from the leader's, beyond the snapshot too.
        """
        if self.end_offset == snapshot.end_offset == self.start_offset:
            return False
        return (snapshot.epoch, snapshot.end_offset) > (self._log.epochs.latest, self.end_offset)

    # --- what the rules see -------------------------------------------------------------------------------------

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def synced_offset(self) -> int:
        return self._log.recovery_point

    @property
    def latest_epoch(self) -> int:
        newest = self.files.newest()
        return max(self._log.epochs.latest, newest.epoch if newest is not None else 0)

    @property
    def snapshots(self) -> Sequence[SnapshotId]:
        return self.files.ids

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        entries = self._log.epochs.entries
        above = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        if not above:
            return self._base_epoch(), self.start_offset
        end_offset = entries[above].start_offset if above < len(entries) else self.end_offset
        return entries[above - 1].epoch, end_offset

    def _base_epoch(self) -> int:
        """The epoch of the snapshot behind which the log starts."""
        return next(
            (snapshot.epoch for snapshot in reversed(self.files.ids) if snapshot.end_offset <= self.start_offset), 0
        )

    def read(self, offset: int, bytes_max: int) -> Buffer:
        parts = self._log.read(offset, bytes_max).parts
        return parts[0] if parts else b""

    def read_snapshot(self, snapshot: SnapshotId, position: int, bytes_max: int) -> tuple[int, Buffer] | None:
        return self.files.read_piece(snapshot, position, bytes_max)

    @property
    def is_failed(self) -> bool:
        """Whether a sync has failed: then the contents of the disk are unknown."""
        return self._log.is_failed

    @property
    def size_bytes(self) -> int:
        return self._log.size_bytes

    # --- what they decide ---------------------------------------------------------------------------------------

    def append(self, batches: Buffer, now_ms: int) -> None:
        """Append batches that carry their offsets. Raises BrokerError where the disk refuses."""
        self._log.append_as_follower(memoryview(batches), now_ms)

    def append_new(self, batches: Buffer, now_ms: int) -> None:
        """Append the batches that the log does not have yet: a retry may follow an attempt that failed half-way."""
        for header, batch in split_batches(batches):
            if header.base_offset >= self.end_offset:
                self._log.append_as_follower(batch, now_ms)

    def truncate(self, offset: int) -> None:
        """Cut off everything from `offset` on; synced when it returns."""
        self._log.truncate_to(offset)

    def flush(self) -> None:
        """Sync the log. Blocks; called in a thread, while appends go on."""
        truncations, log = self._log.truncations, self._log
        log.flush()
        self.promises.note_synced(log.epochs.latest, log.recovery_point, truncations, log.truncations)

    def start_behind(self, snapshot: SnapshotId) -> None:
        """Drop log and snapshots below `snapshot`, which is on the disk, and go on at its end."""
        self._log.start_at(snapshot.end_offset)
        self._log.segments.discarded.remove()
        self.drop_superseded()

    def drop_superseded(self) -> None:
        """Delete snapshots that end below the log start offset: the records between are gone."""
        for older in [snapshot for snapshot in self.files.ids if snapshot.end_offset < self.start_offset]:
            self.files.delete(older)

    # --- what is in it ------------------------------------------------------------------------------------------

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Every batch from the one that holds `offset` to the end."""
        while offset < self.end_offset:
            chunk = self._log.read(offset, READ_BYTES)
            assert chunk.size_bytes, f"the metadata log has nothing at {offset} and ends at {self.end_offset}"
            for part in chunk.parts:
                for header, batch in split_batches(part):
                    yield header, batch
                    offset = header.next_offset

    def messages(self, offset: int) -> Iterator[tuple[int, Message]]:
        """Every record from an offset to the end, control records among them."""
        for _, batch in self.batches(offset):
            # The first batch may start below `offset`.
            yield from ((at, message) for at, message in read_batch(batch) if at >= offset)

    def control_messages(self, offset: int) -> Iterator[tuple[int, Message]]:
        """The control records from an offset to the end, read without decoding the other batches."""
        for header, batch in self.batches(offset):
            if header.is_control:
                yield from read_batch(batch)

    def snapshot_at(self, end_offset: int) -> SnapshotId | None:
        """The id of a snapshot of all records below `end_offset`; None if the newest snapshot has them all."""
        newest = self.files.newest()
        if newest is not None and newest.end_offset >= end_offset:
            return None
        return SnapshotId(end_offset, max(self._log.epochs.epoch_at(end_offset - 1), 0))

    def load_state(self) -> QuorumState:
        """The vote and epoch on the disk; none on a node without a log. Raises UnreadableState where they are lost."""
        try:
            return self.promises.load_state()
        except UnreadableState:
            if self.end_offset == 0 and not self.latest_epoch:
                return QuorumState()
            raise

    def save_state(self, state: QuorumState) -> None:
        """Write and sync the state. Blocks. Raises OSError."""
        self.promises.save_state(state)

    def bootstrap_records(self) -> list[Message]:
        """The first records of a new cluster: those that `format` wrote, or the feature levels of this version."""
        path = os.path.join(self._config.metadata_log_dir, BOOTSTRAP)
        data = self.disk.read_file(path) if self.disk.exists(path) else bootstrap_snapshot(0)
        return list(read(data))

    def retain(self, now_ms: int) -> list[SnapshotId]:
        """Delete snapshots over the bounds of size and age, and the log below the oldest snapshot that is kept."""
        kept = list(self.files.ids)
        deleted = []
        while len(kept) > 1 and self._is_over_bounds(kept, now_ms):
            oldest = kept.pop(0)
            self.files.delete(oldest)
            deleted.append(oldest)
        if kept and kept[0].end_offset > self.start_offset:
            self._log.advance_start(kept[0].end_offset)
            delete_expired(self._log, now_ms, self.end_offset)
            self._log.segments.discarded.remove()
        return deleted

    def _is_over_bounds(self, kept: list[SnapshotId], now_ms: int) -> bool:
        size_bytes = self.size_bytes + sum(map(self.files.size_bytes, kept))
        size_bytes_max: int = self._config["metadata.max.retention.bytes"]
        age_ms_max: int = self._config["metadata.max.retention.ms"]
        return size_bytes > size_bytes_max or self.files.age_ms(kept[0], now_ms) > age_ms_max

    def close(self) -> None:
        self._log.close()


def log_config(config: BrokerConfig) -> LogConfig:
    """A configuration that deletes nothing by time or size and accepts any timestamp: snapshots move the start."""
    return LogConfig(
        segment_bytes=config["internal.metadata.log.segment.bytes"] or config["metadata.log.segment.bytes"],
        segment_ms=config["metadata.log.segment.ms"],
        retention_ms=-1,
        retention_bytes=-1,
        max_message_bytes=BATCH_BYTES_MAX,
        message_timestamp_after_max_ms=TIMESTAMPS_ANY_MS,
    )
