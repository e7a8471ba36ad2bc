"""What of a log survives a loss of power: the recovery point, and the syncs that move it.

Bytes below the recovery point were synced; recovery trusts them. So it moves forward only after a sync, and goes back,
on disk too, before the log is cut and written anew below it.

A cut takes three steps, of which a thread does the first and the last (`sync_records`) for logs that clients wait for:

    lower    the checkpoint says that less is synced (`on_recovery_point_lowered`)
    cut      renames, one ftruncate, and what is known in memory
    seal     sync files and names: nothing of the old history may come back beside the new; work out the producers

Between the steps the log takes no records. What is planned, and not cut yet, may be given up.
"""

import os
import threading
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from errno import ENOSPC
from typing import NamedTuple

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.partition.leader_epochs import EpochEnd, LeaderEpochs
from kavka_broker.core.partition.producer_state import ProducerStates
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage import checkpoints
from kavka_broker.storage.discarded_files import DiscardedFiles
from kavka_broker.storage.disk import Disk, is_out_of_files
from kavka_broker.storage.names import LEADER_EPOCHS, PARTITION_METADATA, PartitionName
from kavka_broker.storage.producer_snapshot import ProducerSnapshots
from kavka_broker.storage.producer_walk import ProducerWalk
from kavka_broker.storage.segment import Segment

log = get("storage")


class Cut(NamedTuple):
    """A cut that is planned: what is kept ends at `offset`, or the log forgets everything and begins at `begins_at`."""

    offset: int
    begins_at: int
    recovery_point: int  # as it was before


class SyncedLog:
    """A row of segments, the last of which is active, and how much of it is synced."""

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
        self.sync_wanted_offset = 0  # up to where appends want a sync, by `flush.messages`
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
        # Whether those who look after all logs have to look at this one; they are told when it comes to be so.
        self.is_changed = True
        self.on_changed: Callable[[], None] = _nothing
        self._bases = [segment.base_offset for segment in segments]
        self._active = segments[-1]
        self._readers: dict[int, tuple[Segment, int]] = {}
        self._upper: tuple[int, Segment, int] | None = None
        self.cleaned_offset = 0  # up to where a cleaning has come
        self.truncations = 0  # how often it was cut: what was read before may be gone
        self._released_at = -1  # where the log ended when idle segments were let go
        self._planned: Cut | None = None
        self._is_lowering = False  # the disk says still that more is synced than the cut will leave
        self._unsealed: Segment | None = None  # was cut, and a loss of power might bring back what has gone
        self._producer_walk: ProducerWalk | None = None  # as of the end that the cut has left; `producers` is older
        self._flush_lock = threading.Lock()
        # Held while something is synced: who comes meanwhile must not count as durable what is only being synced.
        self._sync_lock = threading.Lock()
        # Whether the topic's id is known to survive a loss of power; with it, no record can outlive it.
        self.is_secured = self._has_begun = is_as_left or log_end_offset > 0
        self._unsynced_paths = [os.path.join(directory, PARTITION_METADATA)]
        self._are_indexes_unsynced = False
        # Nothing of a log that was closed and opened again needs a sync.
        self._are_epochs_changed = not is_as_left and (bool(epochs.entries) or log_end_offset > log_start_offset)
        self.name_changes, self._names_synced = int(not is_as_left), 0  # of names in the directory
        self._snapshots = ProducerSnapshots(disk, directory, topic_id, name.partition)
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
        self._segment_ms = config.roll_ms
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

    # --- flush --------------------------------------------------------------------------------------------------

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    @property
    def has_unflushed_segments(self) -> bool:
        """A segment was rolled, and not everything before the active one is synced."""
        return self.recovery_point < self._bases[-1]

    @property
    def awaits_sync(self) -> bool:
        """Whether something was appended that may not be answered before a sync (`flush.messages`), or the next step of
        a cut is a thread's.
        """
        if self._planned is not None:
            return self._is_lowering
        return self.recovery_point < self.sync_wanted_offset or self._unsealed is not None

    @property
    def is_being_cut(self) -> bool:
        return self._planned is not None or self._unsealed is not None

    @property
    def untouched_end(self) -> int:
        """Up to where a cut that is under way leaves the segments as they are; the log's end where there is none."""
        if self._planned is not None:
            return self._planned.offset
        return self.log_end_offset if self._unsealed is None else self._unsealed.base_offset

    @property
    def may_be_cut(self) -> bool:
        """Whether a cut is planned, and the disk promises no more than it leaves."""
        return self._planned is not None and not self._is_lowering

    @property
    def answerable_end(self) -> int:
        """Below it are the records that this replica may answer for, to clients and to its leader."""
        return self.recovery_point if self.recovery_point < self.sync_wanted_offset else self.log_end_offset

    def flush(self) -> None:
        """Make everything appended so far survive a loss of power. Blocks; may run in a thread beside appends.

        Raises BrokerError. The log has failed then, unless there was no descriptor: the next flush syncs all of it.
        """
        self._flush(has_indexes=True)

    def sync_records(self) -> None:
        """As `flush`, but for the indexes of the active segment, which recovery builds anew from its records. Once for
        all that was appended before it began. Where the log is being cut, this is the thread's part of that.
        """
        if self._planned is not None:
            self.lower_on_disk()
            return
        if self._unsealed is not None:
            self.secure()
            with self._sync_lock:  # or a flush that began before the cut would write down the former epochs last
                self.seal()
        if self.awaits_sync:
            self._flush(has_indexes=False)

    def _flush(self, *, has_indexes: bool) -> None:
        with self._sync_lock:
            is_behind = self.unflushed_messages or self._are_epochs_changed or self._is_directory_changed
            if not (is_behind or (has_indexes and self._are_indexes_unsynced)):
                return
            truncations, end_offset = self.truncations, self.log_end_offset
            # The segment that ends at the recovery point too: a roll has added to its indexes.
            segments = self.segments_from(self.recovery_point - 1)
            self._try_sync(lambda: self._sync(segments, has_indexes=has_indexes))
            if self.is_closed:
                return
            with self._flush_lock:
                if truncations == self.truncations:
                    planned = self._planned
                    end_offset = end_offset if planned is None else min(end_offset, planned.offset)
                    self.recovery_point = max(self.recovery_point, end_offset)

    def secure(self) -> None:
        """Make the id of a new log's topic survive a loss of power, ahead of any record. Blocks, as `flush` does, but
        not where the id is synced already: the loop asks, while a thread may be syncing much else.
        """
        if self.is_secured:
            return
        with self._sync_lock:
            if not self.is_secured:
                self._try_sync(lambda: self.sync_id(is_named=False))
                self.is_secured = True

    def _try_sync(self, sync: Callable[[], None]) -> None:
        try:
            sync()
        except OSError as problem:
            if self.is_closed:
                return
            # The kernel may have dropped the pages it could not write: a second sync would prove nothing.
            if not is_out_of_files(problem):
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
        changes = self.name_changes
        self.disk.sync_directory(self.directory)
        self.disk.sync_directory(os.path.dirname(self.directory))
        self.note_secured(changes)

    def note_secured(self, changes: int) -> None:
        """The topic's id was synced, and the names as they were at so many changes of them."""
        self.is_secured = True
        self._names_synced = max(self._names_synced, changes)

    @property
    def _is_directory_changed(self) -> bool:
        return self._names_synced < self.name_changes

    def _sync(self, segments: list[Segment], *, has_indexes: bool) -> None:
        paths, self._unsynced_paths = self._unsynced_paths, []
        try:
            self._sync_segments(segments, has_indexes=has_indexes)
            self._sync_files(paths)
            if self._are_epochs_changed:
                self._are_epochs_changed = False
                self._write_epochs(durable=True)
            if self._is_directory_changed:
                self._sync_names()
        except OSError:
            # Whoever tries again syncs all of it, and what the loop has added meanwhile.
            self._unsynced_paths = [*paths, *self._unsynced_paths]
            self._are_indexes_unsynced = self._are_epochs_changed = True
            raise

    def _sync_segments(self, segments: list[Segment], *, has_indexes: bool) -> None:
        *ended, active = segments
        for segment in ended:
            segment.sync()
        self._are_indexes_unsynced = not has_indexes
        if has_indexes:
            active.sync()
        else:
            active.file.sync()

    def _sync_files(self, paths: list[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError):
                self.disk.sync_file(path)

    def sync_later(self, path: str) -> None:
        """With the next flush this file and its name are synced too."""
        self._unsynced_paths.append(path)
        self.name_changes += 1

    def segments_from(self, offset: int) -> list[Segment]:
        """The segments that hold `offset` and what follows."""
        return self.segments[max(0, bisect_right(self._bases, offset) - 1) :]

    # --- the parts of a cut that block --------------------------------------------------------------------------

    def _plan(self, offset: int, begins_at: int = -1) -> None:
        """Raises KAFKA_STORAGE_ERROR, on a full disk too: that has to be found before anything is gone."""
        self.give_up_cut()
        try:
            self._write_epochs(durable=False)  # as it has to be written again afterwards
        except OSError as problem:
            raise self._not_cut(problem) from problem
        with self._flush_lock:
            self.truncations += 1
            self._planned = Cut(offset, begins_at, self.recovery_point)
            self._is_lowering = offset < self.recovery_point
            self.recovery_point = min(self.recovery_point, offset)
            self.cleaned_offset = min(self.cleaned_offset, offset)
        self.note_changed()

    def give_up_cut(self) -> None:
        """Nothing of what was planned has been cut yet, and nothing will be."""
        with self._flush_lock:
            if self._planned is not None:
                self.recovery_point = max(self.recovery_point, self._planned.recovery_point)
                self._planned, self._is_lowering = None, False
        self.note_changed()

    def lower_on_disk(self) -> None:
        """Let the checkpoint promise no more than the planned cut leaves. Blocks. Raises KAFKA_STORAGE_ERROR."""
        planned = self._planned
        if planned is None or not self._is_lowering:
            return
        try:
            self.on_recovery_point_lowered()
        except OSError as problem:
            raise self._not_cut(problem) from problem
        with self._flush_lock:
            if self._planned is planned:
                self._is_lowering = False

    def seal(self) -> None:
        """Sync files and names after a cut, and work out the producers, before anything is appended. Blocks. Raises
        KAFKA_STORAGE_ERROR.
        """
        truncations, unsealed, walk = self.truncations, self._unsealed, self._producer_walk
        if unsealed is None or walk is None:
            return
        self._try_sync(unsealed.sync)
        producers = self.producers
        try:
            self.seal_names()
            producers = walk.take_in_thread(producers.producers_max)
        except OSError as problem:
            self._are_epochs_changed = True
            if not self.is_closed:
                raise self._not_cut(problem) from problem
        with self._flush_lock:
            if truncations == self.truncations:
                self.producers = producers
                self._unsealed = self._producer_walk = None
                self.recovery_point = max(self.recovery_point, self._bases[0])
        self.note_changed()

    def seal_names(self) -> None:
        """Raises OSError."""
        self._are_epochs_changed = False
        try:
            self._write_epochs(durable=True)  # and with it the names in the directory
        except OSError as problem:
            if problem.errno != ENOSPC:
                raise
            self.discarded.remove()  # the room that they took is enough
            self._write_epochs(durable=True)

    def _not_cut(self, problem: OSError) -> BrokerError:
        """What a step of a cut comes to for which there was no room, or no descriptor; else the log has failed."""
        if problem.errno != ENOSPC and not is_out_of_files(problem):
            self.fail()
        return self._storage_error("truncate", problem)

    # --- epochs -------------------------------------------------------------------------------------------------

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """A leader of `epoch` writes from `start_offset` on. The file says so with its first record: until then nothing
        is lost with it, and a broker that comes to lead very many logs at once writes to none of them.
        """
        self.epochs.assign(epoch, start_offset)

    def _begin_epoch(self, epoch: int, start_offset: int) -> None:
        """The first record of an epoch comes."""
        self.epochs.assign(epoch, start_offset)
        self.epochs.begun = epoch
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
        if self.is_closed:
            return  # a thread comes late: another log may have the directory's name by now
        path = os.path.join(self.directory, LEADER_EPOCHS)
        checkpoints.write_epochs(self.disk, path, [*self.epochs.entries], durable=durable)

    def note_changed(self) -> None:
        """It has grown, was cut, moved its start or let go of files: there are checkpoints to write, or more to do."""
        if not self.is_changed:
            self.is_changed = True
            self.on_changed()

    def fail(self) -> None:
        """Nobody knows what is on the disk: no more of this log."""
        if not self.is_failed:
            self.is_failed = True
            self.on_failed()

    def _storage_error(self, what: str, problem: OSError) -> BrokerError:
        log.error("log.failed", log=str(self.name), what=what, reason=str(problem))
        return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: {what}: {problem.strerror}")


def _nothing() -> None:
    return
