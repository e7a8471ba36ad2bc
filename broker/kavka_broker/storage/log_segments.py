"""The segments of a log and their upkeep: begin and end them, flush them, cut them off at either end.

**What a crash may find.** Bytes below the recovery point were synced; recovery trusts them. So the recovery point moves
forward only after a sync, and goes back, on disk too, before the log is cut and written anew below it
(`on_recovery_point_lowered`). A segment that goes away is first renamed to `.deleted`, which is cheap, and removed
later in a thread; a start removes what was left.
"""

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable
from contextlib import suppress
from errno import ENOSPC

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.partition.leader_epochs import EpochEnd, LeaderEpochs
from kavka_broker.core.partition.producer_state import ProducerStates
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage import checkpoints, retention
from kavka_broker.storage.discarded_files import DiscardedFiles
from kavka_broker.storage.disk import Disk, is_out_of_files
from kavka_broker.storage.names import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    SEGMENT_FILES,
    PartitionName,
    offset_file,
)
from kavka_broker.storage.producer_snapshot import ProducerSnapshots
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.transaction_index import Trust
from kavka_broker.storage.transaction_proof import entry_of, note_batch

log = get("storage")

# How many readers' positions are remembered, so that each goes on where it stopped without a search.
READERS_MAX = 64


class SegmentedLog:
    """A log as a row of segments, the last of which is active."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        name: PartitionName,
        config: LogConfig,
        segments: list[Segment],
        *,
        epochs: LeaderEpochs,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        is_as_left: bool,
        topic_id: bytes = ZERO,
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.name = name
        self.topic, self.partition = name
        self.topic_id = topic_id
        self.segments = segments
        self.epochs = epochs
        self.producers = ProducerStates()
        self.log_start_offset = log_start_offset
        self.log_end_offset = self.found_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self.has_aborted = self.has_doubted = False
        self.proof_problem = ""  # why an index in doubt could not be compared
        self.is_failed = False
        self.damage = ""  # what the start found, of what was synced once
        self.is_foreign = False  # and that it is another partition's
        self.is_closed = False
        self.flushed_ms = segments[-1].created_ms
        # Called when the recovery point went back, so that the checkpoint never promises more than was synced.
        self.on_recovery_point_lowered: Callable[[], None] = _nothing
        # Called once, when nobody knows any more what is on the disk; perhaps in the thread that found out.
        self.on_failed: Callable[[], None] = _nothing
        self.discarded = DiscardedFiles(disk)
        self._bases = [segment.base_offset for segment in segments]
        self._active = segments[-1]
        self._readers: dict[int, tuple[Segment, int]] = {}
        self._upper: tuple[int, Segment, int] | None = None
        self.truncations = 0  # how often it was cut: what was read before may be gone
        self._flush_lock = threading.Lock()
        # Held while something is synced: who comes meanwhile must not count as durable what is only being synced.
        self._sync_lock = threading.Lock()
        # Whether the topic's id is known to survive a loss of power; with it, no record can outlive it.
        self.is_secured = self._has_begun = is_as_left or log_end_offset > 0
        self._unsynced_paths = [os.path.join(directory, PARTITION_METADATA)]
        # Nothing of a log that was closed and opened again needs a sync.
        self._is_directory_changed = self._are_epochs_changed = not is_as_left
        self._snapshots = ProducerSnapshots(disk, directory)
        self.config = config

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        is_plain = config.compression_type == "producer" and not config.log_append_time and not config.compacts
        self._is_plain = is_plain and self._has_begun
        self._message_bytes_max = config.max_message_bytes
        self._segment_bytes_max = config.segment_bytes_max
        self._segment_ms = config.segment_ms
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._flush_messages = config.flush_messages
        for segment in self.segments:
            segment.index_interval_bytes = config.index_interval_bytes

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    # --- roll ---------------------------------------------------------------------------------------------------

    def roll_if_needed(self, now_ms: int) -> bool:
        """Roll an active segment that is older than `segment.ms`, also when nobody writes."""
        active = self._active
        if not active.file.size or now_ms - active.created_ms <= self._segment_ms:
            return False
        self.roll(now_ms)
        return True

    def roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """Begin a new active segment at the end of the log (as a follower, at its leader's next offset)."""
        base_offset = self.log_end_offset if base_offset is None else base_offset
        try:
            self._active.finish()
            segment = self.new_segment(base_offset, now_ms)
        except OSError as problem:
            self._remove_unborn(base_offset)
            raise self._storage_error("roll", problem) from problem
        self.segments.append(segment)
        self._bases.append(base_offset)
        self._active = segment
        self._is_directory_changed = True
        with suppress(OSError):
            # Without it the next start reads more batches, no more than that.
            self.write_snapshot(base_offset, durable=False)
        return segment

    def _remove_unborn(self, base_offset: int) -> None:
        """A start would take what is left of a segment that could not be made for the end of the log."""
        if base_offset in self._bases:
            return
        for suffix in SEGMENT_FILES:
            with suppress(OSError):
                self.disk.remove(os.path.join(self.directory, offset_file(base_offset, suffix)))

    def new_segment(self, base_offset: int, now_ms: int) -> Segment:
        return Segment(
            self.disk,
            self.directory,
            base_offset,
            now_ms,
            index_interval_bytes=self._config.index_interval_bytes,
            index_bytes_max=self._config.segment_index_bytes,
        )

    def write_snapshot(self, offset: int, *, durable: bool) -> None:
        """Write down the producers as they are before `offset`."""
        path = self._snapshots.write(offset, self.producers, durable=durable)
        if not durable:
            self._unsynced_paths.append(path)

    # --- flush --------------------------------------------------------------------------------------------------

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    @property
    def has_unflushed_segments(self) -> bool:
        """A segment was rolled, and not everything before the active one is synced."""
        return self.recovery_point < self._bases[-1]

    def flush(self) -> None:
        """Make everything appended so far survive a loss of power. Blocks; may run in a thread beside appends."""
        with self._sync_lock:
            if not (self.unflushed_messages or self._are_epochs_changed or self._is_directory_changed):
                return
            truncations, end_offset = self.truncations, self.log_end_offset
            # The segment that ends at the recovery point too: a roll has added to its indexes.
            self._try_sync(lambda: self._sync(self.segments_from(self.recovery_point - 1)))
            if self.is_closed:
                return
            with self._flush_lock:
                if truncations == self.truncations:
                    self.recovery_point = max(self.recovery_point, end_offset)

    def secure(self) -> None:
        """Make the id of a new log's topic survive a loss of power, ahead of any record. Blocks, as `flush` does."""
        with self._sync_lock:
            if not self.is_secured:
                self._try_sync(lambda: self.sync_id(is_named=False), is_repeatable=True)
                self.is_secured = True

    def _try_sync(self, sync: Callable[[], None], *, is_repeatable: bool = False) -> None:
        try:
            sync()
        except OSError as problem:
            if self.is_closed:
                return
            # The kernel may have dropped the pages it could not write: a second sync would prove nothing.
            if not (is_repeatable and is_out_of_files(problem)):
                self.fail()
            raise self._storage_error("sync", problem) from problem

    def sync_id(self, *, is_named: bool) -> None:
        """What `secure` does; where `is_named`, another syncs the log directory, for many logs. Raises OSError."""
        with suppress(FileNotFoundError):
            self.disk.sync_file(os.path.join(self.directory, PARTITION_METADATA))
        self.disk.sync_directory(self.directory)
        if not is_named:
            self.disk.sync_directory(os.path.dirname(self.directory))

    def _sync_names(self) -> None:
        self.disk.sync_directory(self.directory)
        self.disk.sync_directory(os.path.dirname(self.directory))
        self.is_secured = True

    def _sync(self, segments: list[Segment]) -> None:
        for segment in segments:
            segment.sync()
        paths, self._unsynced_paths = self._unsynced_paths, []
        for path in paths:
            with suppress(FileNotFoundError):
                self.disk.sync_file(path)
        if self._are_epochs_changed:
            self._are_epochs_changed = False
            self._write_epochs(durable=True)
        if self._is_directory_changed:
            self._is_directory_changed = False
            self._sync_names()

    def sync_later(self, path: str) -> None:
        """With the next flush this file and its name are synced too."""
        self._unsynced_paths.append(path)
        self._is_directory_changed = True

    def segments_from(self, offset: int) -> list[Segment]:
        """The segments that hold `offset` and what follows."""
        return self.segments[max(0, bisect_right(self._bases, offset) - 1) :]

    # --- truncate -----------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Cut off the batch that holds `offset`, and all that follow. Returns whether there was anything.

        Synced, and so are the names: bytes from before must never stand between ones from after.
        """
        if offset >= self.log_end_offset:
            # An epoch may begin at the end that wrote nothing yet, and that the leader has never heard of.
            self._are_epochs_changed |= self.epochs.truncate_from_end(offset)
            return False
        if offset < self._bases[0]:
            self.start_at(offset)
            return True
        holder = self.segments_from(offset)[0].first_to_go(offset)
        offset = offset if holder is None else min(offset, holder.base_offset)
        keep = bisect_right(self._bases, offset)
        try:
            self._prepare_to_cut(offset)
            log.info("log.truncated", log=str(self.name), from_offset=self.log_end_offset, to_offset=offset)
            self._discard(reversed(self.segments[keep:]))
            self._set_segments(self.segments[:keep])
            self.log_end_offset = self._active.truncate(offset)
            # It may have stood in the middle of the batch that goes.
            self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
            self.epochs.truncate_from_end(self.log_end_offset)
            self._snapshots.drop(lambda at: at > self.log_end_offset)
            self.seal_truncation()
        except OSError as problem:
            self.fail()
            raise self._storage_error("truncate", problem) from problem
        self.load_producers()
        return True

    def _prepare_to_cut(self, offset: int) -> None:
        """Raises KAFKA_STORAGE_ERROR where the disk is full: that has to be found before anything is gone."""
        before = self.recovery_point
        try:
            self._write_epochs(durable=False)  # as it has to be written again afterwards
            self._lower_recovery_point(offset)
        except OSError as problem:
            if problem.errno != ENOSPC:
                raise
            self.recovery_point = before
            raise self._storage_error("truncate", problem) from problem

    def seal_truncation(self) -> None:
        """Sync files and names before anything is appended: nothing of the old history may come back beside the new."""
        self._active.sync()
        self._write_epochs(durable=True)  # and with it the names in the directory
        self._are_epochs_changed = False

    def start_at(self, offset: int) -> None:
        """Forget everything and go on at `offset`, as a follower far behind its leader's start."""
        log.info("log.restarted", log=str(self.name), from_offset=self.log_end_offset, to_offset=offset)
        self.secure()
        try:
            self._prepare_to_cut(min(offset, self._bases[0]))
            self._discard(reversed(self.segments))
            self.epochs.clear()
            try:
                self._begin_at(offset)
            except OSError as problem:
                if problem.errno != ENOSPC:
                    raise
                self.discarded.remove()  # the room that they took is enough
                self._begin_at(offset)
        except OSError as problem:
            self.fail()
            raise self._storage_error("truncate", problem) from problem
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset
        self.producers.replace(())

    def _begin_at(self, offset: int) -> None:
        self._set_segments([self.new_segment(offset, self.segments[-1].created_ms)])
        self._snapshots.drop(lambda at: True)
        self.seal_truncation()

    def advance_start(self, offset: int) -> bool:
        """Records below `offset` are not served any more; retention deletes their segments."""
        if offset > self.log_end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.name} ends at {self.log_end_offset}, below {offset}"
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self._are_epochs_changed |= self.epochs.truncate_from_start(offset)
        return True

    def delete_expired(self, now_ms: int, high_watermark: int) -> int:
        """Delete old segments as the topic's retention says; returns how many. None above the high watermark goes."""
        count = retention.expired_count(self, now_ms, high_watermark)
        if not count:
            return 0
        if count == len(self.segments):
            try:
                self.roll(now_ms)
            except BrokerError:
                count -= 1  # the disk may be full; the older ones make room
        try:
            self._discard(self.segments[:count])
        except OSError as problem:
            raise self._storage_error("delete", problem) from problem
        self._set_segments(self.segments[count:])
        self.advance_start(self._bases[0])
        log.info("log.segments_deleted", log=str(self.name), count=count, log_start_offset=self.log_start_offset)
        return count

    def _lower_recovery_point(self, offset: int) -> None:
        with self._flush_lock:
            self.truncations += 1
            is_lower = offset < self.recovery_point
            self.recovery_point = min(self.recovery_point, offset)
        if is_lower:
            self.on_recovery_point_lowered()

    def _set_segments(self, segments: list[Segment]) -> None:
        # In this order: a flush in another thread must not look up new segments by old bases, and leave some out.
        self._bases = [segment.base_offset for segment in segments]
        self.segments = segments
        self._active = segments[-1]
        self._is_directory_changed = True
        self._readers.clear()
        self._upper = None

    def _discard(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            segment.close()
            # The log last: an index without one is a sign that the disk has lost it.
            for path in [*reversed(segment.paths()), self._snapshots.path(segment.base_offset)]:
                self.discarded.add(path)

    # --- producers ----------------------------------------------------------------------------------------------

    def load_producers(self) -> None:
        """Work out the producers' state: the newest snapshot, and the batches behind it.

        A transaction index that has to be built anew needs the state at the start of its segment, and all from there.
        """
        unindexed = (one.base_offset for one in self.segments if one.aborted.trust is Trust.INCOMPLETE)
        end_offset = self.log_end_offset
        self.producers.replace(self._snapshots.load(min(unindexed, default=end_offset), end_offset))
        # Without a snapshot the batch in which the log begins counts too.
        offset = self._snapshots.newest if self._snapshots.newest >= 0 else self.log_start_offset
        for segment in self.segments_from(offset):
            for position, header in segment.sound_batches(segment.offsets.position_before(offset)):
                if header.has_producer_id and header.last_offset >= offset:
                    self.note_producer(header, segment.batch_at(position, header), segment)
            if segment.aborted.trust is Trust.INCOMPLETE:
                segment.aborted.trust = Trust.WHOLE
        self.look_at_indexes()

    def look_at_indexes(self) -> None:
        """What the transaction indexes of all segments come to."""
        self.has_aborted = any(segment.aborted.last_offset >= 0 for segment in self.segments)
        self.has_doubted = any(segment.aborted.trust is Trust.DOUBTED for segment in self.segments)

    def drop_stray_snapshots(self) -> None:
        """Keep those that stand before a segment, and the newest."""
        kept = {*self._bases, max(self._snapshots.offsets(), default=0)}
        self._snapshots.drop(lambda at: at not in kept)

    def note_producer(self, header: BatchHeader, batch: memoryview, segment: Segment) -> None:
        """Keep the producers' state up with a batch that is in `segment`, without judging it."""
        ended = note_batch(self.producers, header, batch)
        if ended is not None and ended.is_aborted:
            segment.aborted.append(entry_of(ended))
            self.has_aborted = True

    # --- epochs -------------------------------------------------------------------------------------------------

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """A leader of `epoch` writes from `start_offset` on."""
        if self.epochs.assign(epoch, start_offset):
            self._are_epochs_changed = True
            with suppress(OSError):
                # Not synced: a flush does that, and recovery reads the epochs of what was not flushed.
                self._write_epochs(durable=False)

    def epoch_end_offset(self, epoch: int) -> EpochEnd:
        return self.epochs.end_offset(epoch, self.log_end_offset)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at `offset`; -1 where it is not known."""
        return self.epochs.epoch_at(offset)

    def _write_epochs(self, *, durable: bool) -> None:
        path = os.path.join(self.directory, LEADER_EPOCHS)
        checkpoints.write_epochs(self.disk, path, [*self.epochs.entries], durable=durable)

    # --- the end ------------------------------------------------------------------------------------------------

    def release_idle(self) -> None:
        """Let go of the maps and descriptors of all segments but the active one."""
        for segment in self.segments[:-1]:
            segment.release()

    def close(self) -> None:
        """Flush, and leave the log as a clean start wants to find it. Blocks."""
        if self.is_closed:
            return
        try:
            if not self.is_failed:
                self._finish()
        except OSError as problem:
            raise self._storage_error("close", problem) from problem
        finally:
            self.abandon()

    def _finish(self) -> None:
        self._active.finish()
        self.flush()
        if self.log_end_offset > max(self._snapshots.newest, 0):
            self.write_snapshot(self.log_end_offset, durable=True)
        self.drop_stray_snapshots()

    def fail(self) -> None:
        """Nobody knows what is on the disk: no more of this log."""
        if not self.is_failed:
            self.is_failed = True
            self.on_failed()

    def abandon(self) -> None:
        """Let go of all files as they are: the log is deleted, or its disk has failed."""
        self.is_closed = True
        for segment in self.segments:
            segment.close()

    def _storage_error(self, what: str, problem: OSError) -> BrokerError:
        log.error("log.failed", log=str(self.name), what=what, reason=str(problem))
        return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: {what}: {problem.strerror}")


def _nothing() -> None:
    return
