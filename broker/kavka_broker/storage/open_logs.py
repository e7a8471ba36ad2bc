"""The logs that a broker has open, over its log directories: what is done to all of them time and again, and the end.

A directory that fails goes offline with all its logs; the others go on. What takes time is made for threads and touches
no log's structure: `secure`, `forget_former`, `reopen`, `flush_due`, `write_checkpoints`, `note_cleaned`,
`remove_deleted`, `close`. `retain` changes logs, and runs on the loop.
"""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from kavka_broker.logs import get
from kavka_broker.loop.slices import COST_PER_YIELD, Cost, Work
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.disk_errors import is_out_of_files, is_passing
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.found_logs import Unusable
from kavka_broker.storage.future_logs import FutureLogs
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.parallel import side_by_side
from kavka_broker.storage.retention import delete_expired
from kavka_broker.storage.retired_logs import STRAY_RETENTION_MS, SetAside

log = get("storage")

HighWatermark = Callable[[Log], int]
#: They wait for the disk, not for a processor; syncs that wait together share a commit of the filesystem's journal.
SECURING_THREADS_MAX: Final = 16
#: What it takes to look at a log of which nothing is to be deleted.
RETAIN_COST: Final = 10


class OpenLogs:
    """The logs by topic and partition, and the directories that they are in."""

    def __init__(
        self,
        disk: Disk,
        cluster_id: str,
        directories: list[LogDirectory],
        *,
        random_bytes: Callable[[int], bytes] = os.urandom,
        threads_max: int = 4,
    ) -> None:
        assert threads_max > 0
        assert len({directory.path for directory in directories}) == len(directories), "a directory is there twice"
        self.disk = disk
        self._threads_max = threads_max
        self.cluster_id = cluster_id
        self.directories = directories
        # Told when a directory has failed; its logs are offline already.
        self.on_offline: Callable[[LogDirectory], None] = _nothing
        self._logs: dict[PartitionName, Log] = {}
        self._homes: dict[PartitionName, LogDirectory] = {}
        self.unusable_logs: dict[PartitionName, Unusable] = {}
        # Of unusable logs: what a thread has come to that tried again, until the loop takes it.
        self.reopened: dict[PartitionName, Log | Exception] = {}
        self.missed: dict[PartitionName, None] = {}  # logs that are gone: the checkpoints are their only trace
        # Those that are not as their checkpoints say, or that have more to do: very many may have nothing.
        self._changed: dict[PartitionName, Log] = {}
        # New logs, or found after a crash without records, whose topic's id and names may not be synced yet.
        self._unsecured: list[Log] = []
        self.aside = SetAside(disk, random_bytes, self.fail_directory)
        self.futures = FutureLogs(disk, random_bytes, self.aside, self.fail_directory)
        self._unclosed: dict[PartitionName, None] = {}  # logs that the next start has to recover
        self._is_loaded = False

    def __iter__(self) -> Iterator[Log]:
        return iter(list(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.is_online]

    @property
    def has_room(self) -> bool:
        """Whether every directory can take some more, after one could not."""
        return all(directory.has_room for directory in self.online)

    def get(self, topic: str, partition: int) -> Log | None:
        return self._logs.get(PartitionName(topic, partition))

    def directory_of(self, topic: str, partition: int) -> LogDirectory | None:
        return self._homes.get(PartitionName(topic, partition))

    def high_watermark(self, topic: str, partition: int) -> int:
        """What the last run knew to be committed, between the log's start and its end."""
        name = PartitionName(topic, partition)
        assert name in self._logs, f"{name} is not open"
        home, opened = self._homes[name], self._logs[name]
        known = home.high_watermarks.get(name, opened.log_start_offset)
        return max(opened.log_start_offset, min(known, opened.log_end_offset))

    @property
    def _spoken_for(self) -> tuple[PartitionName, ...]:
        return (*self.unusable_logs, *self.missed)

    # --- upkeep -------------------------------------------------------------------------------------------------

    @property
    def has_unsecured(self) -> bool:
        """Whether there are logs whose topic's id, or names, may not survive a loss of power."""
        return bool(self._unsecured)

    def secure(self) -> None:
        """Sync the ids of new logs, ahead of their first records. Blocks: call it in a thread."""
        logs, self._unsecured = self._unsecured, []
        for directory in self.online:
            inside = [
                partition_log
                for partition_log in logs
                if self._homes.get(partition_log.name) is directory and not partition_log.is_closed
            ]
            changes = [partition_log.segments.name_changes for partition_log in inside]
            try:
                with side_by_side(SECURING_THREADS_MAX if self._threads_max > 1 else 1, "securing") as mapped:
                    list(mapped(self._sync_id, inside))
                self.disk.sync_directory(directory.path)
                for partition_log, seen in zip(inside, changes, strict=True):
                    partition_log.durability.note_secured(seen)
            except OSError as problem:
                if not is_out_of_files(problem):  # otherwise each log tries again with its first record
                    self.fail_directory(directory, problem)

    def remembers_former(self, topic: str, partition: int) -> bool:
        """Whether nothing has this name now, and checkpoints still speak of a log that had it."""
        name = PartitionName(topic, partition)
        is_free = name not in self._logs and name not in self.unusable_logs and name not in self.missed
        return is_free and any(directory.remembers(name) for directory in self.online)

    def forget_former(self, names: Collection[PartitionName]) -> None:
        """Let the checkpoints forget logs that had these names, before new ones have them. Blocks: call it in a thread.

        A directory whose disk refuses is failed here, not on the loop that would make the new log there. Where nothing
        is wrong with the disk, as when it is full, a new log is refused until a thread has been here again.
        """
        for directory in self.online:
            former = [name for name in names if directory.remembers(name) and self._homes.get(name) is not directory]
            try:
                directory.forget(former, partial(self._logs_in, directory), self._spoken_for)
                directory.forget_problem = None
            except OSError as problem:
                directory.forget_problem = problem
                if not is_passing(problem):
                    self.fail_directory(directory, problem)

    def _sync_id(self, partition_log: Log) -> None:
        try:
            partition_log.durability.sync_id(is_named=True)
        except FileNotFoundError:
            if not partition_log.is_closed:
                raise

    @property
    def changed(self) -> list[Log]:
        """The logs that have something to flush, to remove or to write down."""
        return list(self._changed.values())

    def _note_changed(self, partition_log: Log) -> None:
        if self._logs.get(partition_log.name) is partition_log:
            self._changed[partition_log.name] = partition_log

    def clear_changed(self, partition_log: Log, is_written: Callable[[Log], bool]) -> None:
        """Look at this log no more until it changes, if it `is_written` as it is now and has nothing more to do."""
        if self._changed.pop(partition_log.name, None) is None:
            return
        partition_log.state.is_changed = False  # before it is compared: a thread may be changing it just now
        if (
            partition_log.durability.unflushed_messages
            or len(partition_log.segments.discarded)
            or not is_written(partition_log)
        ):
            partition_log.state.note_changed()

    def flush_due(self, now_ms: int) -> None:
        """Sync rolled segments, and what is older than `flush.ms`. Blocks: call it in a thread."""
        for partition_log in self.changed:
            is_late = (
                partition_log.durability.unflushed_messages > 0
                and now_ms - partition_log.durability.flushed_ms >= partition_log.config.flush_ms
            )
            if not partition_log.is_failed and (is_late or partition_log.durability.has_unflushed_segments):
                self._try_flush(partition_log, now_ms)

    def _try_flush(self, partition_log: Log, now_ms: int) -> None:
        with suppress(BrokerError):  # its directory knows already, or there was no descriptor
            partition_log.flush()
            partition_log.durability.flushed_ms = now_ms

    def _log_failed(self, partition_log: Log) -> None:
        """Wherever it was found: in a sync within an append too, whose leader must not go on refusing forever."""
        home = self._homes.get(partition_log.name)
        if home is not None and self._logs.get(partition_log.name) is partition_log:
            self.fail_directory(home)

    def retain(
        self,
        now_ms: int,
        high_watermark_of: HighWatermark | None = None,
        *,
        cost: Cost | None = None,
    ) -> Work[int]:
        """Delete what the topics' retention gives up; returns how many segments went."""
        count, cost = 0, cost or Cost()
        for partition_log in self:
            if partition_log.is_failed or partition_log.is_closed:
                continue
            high_watermark = (
                partition_log.log_end_offset if high_watermark_of is None else high_watermark_of(partition_log)
            )
            before = count
            try:
                count += delete_expired(partition_log, now_ms, high_watermark)
            except BrokerError as problem:
                log.error("retention.failed", log=str(partition_log.name), reason=str(problem))
            partition_log.release_idle()
            if cost.add(COST_PER_YIELD if count > before else RETAIN_COST):
                yield
        return count

    @property
    def has_deleted(self) -> bool:
        """Whether something waits to be removed."""
        return len(self.aside) > 0 or any(len(partition_log.segments.discarded) for partition_log in self.changed)

    def remove_deleted(self, now_ms: int, *, stray_retention_ms: int = STRAY_RETENTION_MS) -> None:
        """Remove what was renamed away long enough ago. Blocks: call it in a thread."""
        for partition_log in self.changed:
            partition_log.segments.discarded.remove()
        self.aside.free(now_ms, stray_retention_ms=stray_retention_ms)

    @property
    def have_left(self) -> bool:
        """Whether checkpoints may speak of logs that are gone."""
        return any(directory.left for directory in self.online)

    @property
    def have_unnamed(self) -> bool:
        """Whether checkpoints do not speak yet of a log whose topic's id is synced."""
        return any(
            partition_log.durability.is_secured and not self.is_named(partition_log) for partition_log in self.changed
        )

    def is_named(self, partition_log: Log) -> bool:
        """Whether the recovery points on the disk name this log: its topic's id is synced then. Of one in a directory
        that has failed they say all that they will.
        """
        home = self._homes.get(partition_log.name)
        return home is None or not home.is_online or partition_log.name in home.recovery_points

    def write_checkpoints(self, high_watermark_of: HighWatermark | None = None) -> bool:
        """Write down recovery points, log starts and high watermarks; returns whether all of it was written. Blocks:
        call it in a thread.
        """
        is_written = True
        for directory in self.online:
            try:
                directory.write_checkpoints(partial(self._logs_in, directory), self._spoken_for, high_watermark_of)
            except OSError as problem:
                is_written = False
                log.error("checkpoint.failed", directory=directory.path, reason=str(problem))
        return is_written

    def note_cleaned(self, partition_log: Log) -> None:
        """Write down up to where the log has been cleaned. Blocks: call it in a thread. Raises OSError."""
        home = self._homes.get(partition_log.name)
        if home is not None:
            home.write_cleaned_offsets(partial(self._logs_in, home), self._spoken_for)

    def _write_recovery_points(self, directory: LogDirectory) -> None:
        directory.write_recovery_points(partial(self._logs_in, directory), self._spoken_for)

    def _logs_in(self, directory: LogDirectory) -> list[Log]:
        return [partition_log for partition_log in self if self._homes.get(partition_log.name) is directory]

    def fail_directory(self, directory: LogDirectory, problem: OSError | None = None) -> None:
        assert directory in self.directories, f"{directory.path} is not among the log directories"
        if not directory.is_online:
            return
        directory.is_online = False
        reason = "" if problem is None else str(problem)
        log.error("directory.failed", directory=directory.path, logs=len(self._logs_in(directory)), reason=reason)
        for partition_log in self._logs_in(directory):
            partition_log.state.is_failed = True
        self.on_offline(directory)

    # --- stop ---------------------------------------------------------------------------------------------------

    def close(self, *, broker_epoch: int = -1, high_watermark_of: HighWatermark | None = None) -> None:
        """Close every log and mark the directories clean. Blocks: call it in a thread."""
        if not self._is_loaded:
            self._leave_as_found(broker_epoch)
            return
        unfinished: list[Log] = []
        for partition_log in self:
            if partition_log.is_finished:
                self._close(partition_log)  # threads that do so little would only wait for each other
            else:
                unfinished.append(partition_log)
        with side_by_side(self._threads_max if unfinished else 1, "closing") as mapped:
            list(mapped(self._close, unfinished))
        assert all(opened.is_closed for opened in self), "a log is open behind a clean mark"
        for directory in self.online:
            try:
                directory.write_checkpoints(partial(self._logs_in, directory), self._spoken_for, high_watermark_of)
                if self._is_clean(directory):
                    directory.mark_clean(broker_epoch)
            except OSError as problem:
                log.error("clean_mark.not_written", directory=directory.path, reason=str(problem))
        for directory in self.directories:
            directory.release()

    def _is_clean(self, directory: LogDirectory) -> bool:
        """Whether no log of it needs recovery.

        A log needs it whose sync has failed: nothing is known of what is on the disk. So does one for whose last index
        entries there was no room, and one that could not be opened, unless the last stop was clean.
        """
        if self.unusable_logs and not directory.is_clean:
            return False
        return not any(
            partition_log.is_failed or partition_log.name in self._unclosed
            for partition_log in self._logs_in(directory)
        )

    def _leave_as_found(self, broker_epoch: int) -> None:
        """The start did not come to its end: what was clean stays so, what needs recovery still does. A registration on
        the way here has taken the place of the one that the mark named.
        """
        for partition_log in self:
            partition_log.abandon()
        for directory in self.directories:
            if directory.is_online and directory.is_clean and directory.broker_epoch is not None:
                directory.mark_clean(broker_epoch if broker_epoch >= 0 else directory.broker_epoch)
            directory.release()

    def _close(self, partition_log: Log) -> None:
        try:
            partition_log.close()
        except BrokerError as error:
            problem = error.__cause__
            if isinstance(problem, OSError) and is_passing(problem):
                self._unclosed[partition_log.name] = None  # a full disk is not a broken one
            else:
                self.fail_directory(self._homes[partition_log.name])


def _nothing(directory: LogDirectory) -> None:
    del directory
