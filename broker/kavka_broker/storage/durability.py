"""What of a log survives a loss of power: the recovery point, and the syncs that move it.

Bytes below the recovery point were synced; recovery trusts them. So it moves forward only after a sync, and goes back,
on disk too, before the log is cut and written again below it.

A cut takes three steps, of which a thread does the first and the last (`sync_records`) for logs that clients wait for:

    lower    the checkpoint says that less is synced (`on_recovery_point_lowered`)
    cut      renames, one ftruncate, and what is known in memory (`log_truncation`)
    seal     sync files and names: nothing of the old history may come back beside the new; work out the producers

Between the steps the log takes no records. What is planned, and not cut yet, may be given up.
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from errno import ENOSPC
from typing import NamedTuple

from kavka_broker.protocol.errors import BrokerError
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.disk_errors import is_out_of_files
from kavka_broker.storage.epoch_file import EpochFile
from kavka_broker.storage.file_names import PARTITION_METADATA
from kavka_broker.storage.log_state import LogState
from kavka_broker.storage.producer_files import ProducerFiles
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.segments import Segments


class Cut(NamedTuple):
    """A planned cut: the log ends at `offset`, or forgets everything and begins at `begins_at`."""

    offset: int
    begins_at: int
    recovery_point: int  # before the cut


class Durability:
    """The synced part of one log. `flush`, `sync_records` and `secure` may run in a thread beside the loop."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        state: LogState,
        segments: Segments,
        epoch_file: EpochFile,
        producer_files: ProducerFiles,
        *,
        recovery_point: int,
        is_secured: bool,
    ) -> None:
        assert recovery_point <= state.end_offset, f"{state.name}: {recovery_point} of {state.end_offset} is synced"
        assert recovery_point >= 0, f"{state.name}: {recovery_point} is synced"
        self._disk = disk
        self._directory = directory
        self._state = state
        self._segments = segments
        self._epoch_file = epoch_file
        self._producer_files = producer_files
        self.recovery_point = recovery_point
        self.sync_wanted_offset = 0  # up to where appends want a sync, by `flush.messages`
        self.flushed_ms = segments.active.created_ms
        # Whether the topic's id is synced, so that no record can outlive it.
        self.is_secured = is_secured
        # Called when the recovery point went back, so that the checkpoint never promises more than was synced.
        self.on_recovery_point_lowered: Callable[[], None] = _nothing
        self.planned: Cut | None = None
        self._is_lowering = False  # the disk still says that more is synced than the cut will leave
        self._unsealed: Segment | None = None  # was cut: a loss of power might bring its records back
        self._recovery_lock = threading.Lock()
        # Held during a sync: records appended meanwhile must not count as durable.
        self._sync_lock = threading.Lock()
        self._unsynced_paths = [os.path.join(directory, PARTITION_METADATA)]
        self._are_indexes_unsynced = False
        self._names_synced = 0

    # --- how far it is ------------------------------------------------------------------------------------------

    @property
    def unflushed_messages(self) -> int:
        return self._state.end_offset - self.recovery_point

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether a segment was rolled, and not everything before the active one is synced."""
        return self.recovery_point < self._segments.active_base

    @property
    def awaits_sync(self) -> bool:
        """Whether records were appended that may not be answered before a sync (`flush.messages`), or the next step of
        a cut is a thread's.
        """
        if self.planned is not None:
            return self._is_lowering
        return self.recovery_point < self.sync_wanted_offset or self._unsealed is not None

    @property
    def answerable_end(self) -> int:
        """The end of the records that this replica may answer for, to clients and to its leader."""
        return self.recovery_point if self.recovery_point < self.sync_wanted_offset else self._state.end_offset

    @property
    def is_being_cut(self) -> bool:
        return self.planned is not None or self._unsealed is not None

    @property
    def untouched_end(self) -> int:
        """The offset up to which a planned cut leaves the segments as they are; the log's end where none is planned."""
        if self.planned is not None:
            return self.planned.offset
        return self._state.end_offset if self._unsealed is None else self._unsealed.base_offset

    @property
    def may_be_cut(self) -> bool:
        """Whether a cut is planned, and the checkpoint on the disk promises no more than it leaves."""
        return self.planned is not None and not self._is_lowering

    # --- flush --------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Make everything appended so far survive a loss of power. Blocks; may run in a thread beside appends.

        Raises BrokerError. The log has failed then, unless there was no descriptor: the next flush syncs all of it.
        """
        self._flush(has_indexes=True)

    def sync_records(self) -> None:
        """As `flush`, except for the indexes of the active segment, which recovery builds again from its records. Once
        for all that was appended before it began. Where the log is being cut, this is the thread's part of that.
        """
        if self.planned is not None:
            self.lower_on_disk()
            return
        if self._unsealed is not None:
            self.secure()
            with self._sync_lock:  # or a flush that began before the cut would write down the former epochs last
                self.seal()
        if self.awaits_sync:
            self._flush(has_indexes=False)

    def _flush(self, *, has_indexes: bool) -> None:
        state = self._state
        with self._sync_lock:
            is_behind = self.unflushed_messages or self._epoch_file.is_unsynced or self._are_names_unsynced
            if not (is_behind or (has_indexes and self._are_indexes_unsynced)):
                return
            truncations, end_offset = state.truncations, state.end_offset
            # The segment that ends at the recovery point is synced too: a roll has added to its indexes.
            segments = self._segments.from_offset(self.recovery_point - 1)
            self._try_sync(lambda: self._sync(segments, has_indexes=has_indexes))
            if state.is_closed:
                return
            with self._recovery_lock:
                assert truncations <= state.truncations
                if truncations == state.truncations:
                    planned = self.planned
                    end_offset = end_offset if planned is None else min(end_offset, planned.offset)
                    self.recovery_point = max(self.recovery_point, end_offset)
                    is_within = self.recovery_point <= state.end_offset
                    assert is_within or planned or state.is_failed, f"{state.name}: {self.recovery_point} is synced"

    def _try_sync(self, sync: Callable[[], None]) -> None:
        try:
            sync()
        except OSError as problem:
            if self._state.is_closed:
                return
            # The kernel may have dropped the pages it could not write: a second sync would prove nothing.
            if not is_out_of_files(problem):
                self._state.fail()
            raise self._state.storage_error("sync", problem) from problem

    def _sync(self, segments: list[Segment], *, has_indexes: bool) -> None:
        paths, self._unsynced_paths = self._unsynced_paths, []
        try:
            self._sync_segments(segments, has_indexes=has_indexes)
            self._sync_files(paths)
            if self._epoch_file.is_unsynced:
                self._epoch_file.is_unsynced = False
                self._epoch_file.write(durable=True)
            if self._are_names_unsynced:
                self._sync_names()
        except OSError:
            # The next flush syncs all of it, and what the loop has added meanwhile.
            self._unsynced_paths = [*paths, *self._unsynced_paths]
            self._are_indexes_unsynced = self._epoch_file.is_unsynced = True
            raise

    def _sync_segments(self, segments: list[Segment], *, has_indexes: bool) -> None:
        assert segments, f"{self._state.name} has nothing to sync"
        assert self._sync_lock.locked(), (
            f"{self._state.name}: another sync may count records that this one has not seen"
        )
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
                self._disk.sync_file(path)

    def sync_later(self, path: str, *, is_named: bool = False) -> None:
        """Sync this file with the next flush, and its name, unless that is counted already (`is_named`)."""
        assert path.startswith(self._directory), f"{path} is no file of {self._directory}"
        self._unsynced_paths.append(path)
        self._segments.name_changes += not is_named

    # --- names --------------------------------------------------------------------------------------------------

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

    def sync_id(self, *, is_named: bool) -> None:
        """Sync the topic's id; where `is_named`, the caller syncs the log directory, for many logs. Raises OSError."""
        with suppress(FileNotFoundError):
            self._disk.sync_file(os.path.join(self._directory, PARTITION_METADATA))
        self._disk.sync_directory(self._directory)
        if not is_named:
            self._disk.sync_directory(os.path.dirname(self._directory))

    def _sync_names(self) -> None:
        changes = self._segments.name_changes
        self._disk.sync_directory(self._directory)
        self._disk.sync_directory(os.path.dirname(self._directory))
        self.note_secured(changes)

    def note_secured(self, changes: int) -> None:
        """Note that the topic's id was synced, and the names as they were at that count of changes."""
        assert changes <= self._segments.name_changes
        self.is_secured = True
        self._names_synced = max(self._names_synced, changes)

    @property
    def _are_names_unsynced(self) -> bool:
        return self._names_synced < self._segments.name_changes

    # --- the parts of a cut that block --------------------------------------------------------------------------

    def plan(self, offset: int, begins_at: int = -1) -> None:
        """Plan a cut. Raises KAFKA_STORAGE_ERROR, on a full disk too: that has to be found before anything is gone."""
        self.give_up_cut()
        try:
            self._epoch_file.write(durable=False)  # not synced, as it is written again after the cut
        except OSError as problem:
            raise self._not_cut(problem) from problem
        state = self._state
        with self._recovery_lock:
            state.truncations += 1
            self.planned = Cut(offset, begins_at, self.recovery_point)
            self._is_lowering = offset < self.recovery_point
            self.recovery_point = min(self.recovery_point, offset)
            state.cleaned_offset = min(state.cleaned_offset, offset)
        assert self.recovery_point <= offset
        state.note_changed()

    def give_up_cut(self) -> None:
        """Give the planned cut up, of which nothing was carried out yet."""
        with self._recovery_lock:
            if self.planned is not None:
                self.recovery_point = max(self.recovery_point, self.planned.recovery_point)
                self.planned, self._is_lowering = None, False
                assert self.recovery_point <= self._state.end_offset or self._state.is_failed
        self._state.note_changed()

    def lower_on_disk(self) -> None:
        """Let the checkpoint promise no more than the planned cut leaves. Blocks. Raises KAFKA_STORAGE_ERROR."""
        planned = self.planned
        if planned is None or not self._is_lowering:
            return
        try:
            self.on_recovery_point_lowered()
        except OSError as problem:
            raise self._not_cut(problem) from problem
        with self._recovery_lock:
            if self.planned is planned:
                assert self.recovery_point <= planned.offset, f"{self._state.name}: {planned} leaves too little"
                self._is_lowering = False

    def note_cut(self) -> None:
        """Note that the cut was carried out; until `seal` the log takes no records."""
        state = self._state
        assert self.may_be_cut, f"{state.name} was cut, and nobody has asked for it"
        with self._recovery_lock:
            # Noted last, when no sync of the former records can be taken for one of the new.
            state.truncations += 1
            self.sync_wanted_offset = min(self.sync_wanted_offset, state.end_offset)
            # The disk may have lost more of the last batches than was known at the plan.
            self.recovery_point = min(self.recovery_point, state.end_offset)
            self._unsealed, self.planned = self._segments.active, None
        state.has_begun = False

    def seal(self) -> None:
        """Sync files and names after a cut, and work out the producers, before anything is appended. Blocks. Raises
        KAFKA_STORAGE_ERROR.
        """
        state = self._state
        truncations, unsealed = state.truncations, self._unsealed
        if unsealed is None:
            return
        self._try_sync(unsealed.sync)
        producers = self._producer_files.states
        try:
            self.seal_names()
            producers = self._producer_files.walked()
        except OSError as problem:
            self._epoch_file.is_unsynced = True
            if not state.is_closed:
                raise self._not_cut(problem) from problem
        with self._recovery_lock:
            if truncations == state.truncations:
                assert self._unsealed in (None, self._segments.active), f"{state.name} grew before its cut was synced"
                self._producer_files.end_walk(producers)
                self._unsealed = None
                self.recovery_point = max(self.recovery_point, self._segments.first_base)
                is_within = self.recovery_point <= state.end_offset
                assert is_within or state.is_failed, f"{state.name}: {self.recovery_point} is synced"
        state.note_changed()

    def seal_names(self) -> None:
        """Sync the names of the log's files. Raises OSError."""
        self._epoch_file.is_unsynced = False
        try:
            self._epoch_file.write(durable=True)  # this syncs the names in the directory, too
        except OSError as problem:
            if problem.errno != ENOSPC:
                raise
            self._segments.discarded.remove()  # the room that they took is enough
            self._epoch_file.write(durable=True)

    def _not_cut(self, problem: OSError) -> BrokerError:
        """Return the error of a cut without room or descriptor; otherwise the log has failed."""
        if problem.errno != ENOSPC and not is_out_of_files(problem):
            self._state.fail()
        return self._state.storage_error("truncate", problem)


def _nothing() -> None:
    return
