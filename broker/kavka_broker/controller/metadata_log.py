"""`__cluster_metadata-0`: the log of all decisions, with its snapshots and the quorum's memory, in Kafka's files.

It is a log like any other, except that what is acknowledged is synced, and that its beginning goes when a snapshot
stands for it, not with time: it begins where its oldest snapshot ends. `metadata_log_opener` opens and checks it.

To the rules of the quorum it is a `LogView`; what they decide about it comes back as calls of the other methods.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from kavka_broker.controller.metadata_batches import read_batch
from kavka_broker.controller.quorum_state_file import QuorumStateFile
from kavka_broker.controller.snapshot_files import SnapshotId, Snapshots
from kavka_broker.protocol.message import Buffer, Message
from kavka_broker.protocol.records.batch import BatchHeader, split_batches
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.log import Log
from kavka_broker.storage.retention import delete_expired

#: The largest batch that is written, and so the largest decision (this is Kafka's bound).
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
READ_BYTES: Final = 1024 * 1024


class MetadataLog:
    """The controller's own log. Everything but `flush` is called on the loop."""

    def __init__(self, disk: Disk, log: Log, snapshots: Snapshots, promises: QuorumStateFile) -> None:
        self.disk = disk
        self._log = log
        self.files = snapshots
        self.promises = promises
        # The offset of the first damaged batch, and what is wrong with it.
        self.damage: tuple[int, str] | None = None
        log.durability.on_recovery_point_lowered = promises.forget_synced

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
        self.files.delete_below(self.start_offset)

    def advance_start(self, offset: int, now_ms: int) -> None:
        """Delete the log below `offset`, by whole segments."""
        self._log.advance_start(offset)
        delete_expired(self._log, now_ms, self.end_offset)
        self._log.segments.discarded.remove()

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

    def close(self) -> None:
        self._log.close()
