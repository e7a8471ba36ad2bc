"""All logs of a broker: which log a partition has, and where.

A new log goes to the directory that has the fewest. What changes which logs there are runs on the loop: `create`,
`delete`, `replace`; what is done to all of them is in `open_logs`.

A log is its topic's id: one of another topic of the same name never serves for it, wherever it comes from. What nobody
knows any more is set aside (`retired_logs`), copies on their way into another directory are `future_logs`, and what a
start makes of what it finds is `found_logs`.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Final

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.disk_errors import is_passing
from kavka_broker.storage.file_names import DELETE_DIRECTORY, LOG, STRAY_DIRECTORY, PartitionName, parse_future
from kavka_broker.storage.found_logs import FoundLog, KnownId, Search, Unusable, open_found
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory, UnusableDirectory, open_directories
from kavka_broker.storage.new_logs import begin, clear, in_the_way
from kavka_broker.storage.open_logs import HighWatermark, OpenLogs
from kavka_broker.storage.parallel import side_by_side

__all__ = ["LogManager", "UnusableDirectory"]

log = get("storage")

#: Recovery reads whole segments: more readers than this make a disk slower, not faster.
RECOVERY_THREADS_MAX: Final = 2
#: Size of the newest segment up to which the thread that looks for the logs opens a log itself.
SMALL_BYTES_MAX: Final = 256 * 1024
Progress = Callable[[int, int, str], None]


class LogManager(OpenLogs):
    """Logs by topic and partition. `open` takes the directories, `load` opens the logs in them."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        paths: Iterable[str],
        *,
        node_id: int,
        cluster_id: str | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
        threads_max: int = 4,
    ) -> "LogManager":
        """Lock the directories. Raises UnusableDirectory, with a message for the operator, where one is not ours."""
        found_id, directories = open_directories(
            disk, list(paths), cluster_id=cluster_id, node_id=node_id, new_id=lambda: random_bytes(16)
        )
        return cls(disk, found_id, directories, random_bytes=random_bytes, threads_max=threads_max)

    # --- start --------------------------------------------------------------------------------------------------

    def load(
        self,
        config_of: Callable[[str], LogConfig],
        now_ms: int,
        *,
        known_id: KnownId | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Open every log, several at a time; after an unclean stop this recovers them. Blocks.

        `known_id` tells of two logs of a name which one is the cluster's. `progress` is called with how many are open,
        how many there are, and the name of the last one.
        """
        assert not self._is_loaded, "the logs are opened once"
        for directory in self.online:
            try:
                directory.unmark_clean()
            except OSError as problem:
                self.fail_directory(directory, problem)
        search = Search(self.disk, self.aside, self.futures, self.fail_directory, known_id)
        found = search.logs(self.online, are_all=len(self.online) == len(self.directories))
        opening = partial(self._open, config_of=config_of, now_ms=now_ms)
        large: list[FoundLog] = []
        small: list[FoundLog] = []
        for found_log in found:
            (large if self._threads_max > 1 and _has_much_to_recover(self.disk, found_log) else small).append(found_log)
        with side_by_side(min(self._threads_max, RECOVERY_THREADS_MAX) if large else 1, "recovery") as mapped:
            opened = chain(
                zip(large, mapped(opening, large), strict=True), zip(small, map(opening, small), strict=True)
            )
            for count, (found_log, made) in enumerate(opened, 1):
                if made is None:
                    continue
                self._add(found_log.directory, made)
                if progress is not None:
                    progress(count, len(found), str(made.name))
        self._is_loaded = True

    def _open(self, found_log: FoundLog, *, config_of: Callable[[str], LogConfig], now_ms: int) -> Log | None:
        directory, name = found_log.directory, found_log.name
        if not directory.is_online:
            self.unusable_logs[name] = Unusable(found_log, OSError("its directory is offline"))
            return None
        outcome = open_found(self.disk, found_log, config_of(name.topic), now_ms)
        if isinstance(outcome, Log):
            return outcome
        self._note_unusable(found_log, outcome)
        return None

    def _note_unusable(self, found_log: FoundLog, problem: Exception) -> Unusable:
        directory, name = found_log.directory, found_log.name
        log.error("log.not_opened", log=str(name), directory=directory.path, reason=str(problem))
        self.unusable_logs[name] = unusable = Unusable(found_log, problem)
        if unusable.has_failed:
            self.fail_directory(directory, unusable.cause)
        return unusable

    def _add(self, directory: LogDirectory, opened: Log) -> None:
        twin = self._logs.get(opened.name)
        if twin is not None and not self._give_way(twin, opened, directory):
            return
        opened.durability.on_recovery_point_lowered = partial(self._write_recovery_points, directory)
        opened.state.on_failed = partial(self._log_failed, opened)
        opened.state.on_changed = partial(self._note_changed, opened)
        opened.state.is_failed |= not directory.is_online
        opened.state.cleaned_offset = max(opened.state.cleaned_offset, directory.cleaned_offset_of(opened))
        assert not opened.is_closed, f"{opened.name} is closed"
        assert opened.name not in self._logs, f"{opened.name} takes the place of a log in service"
        assert directory in self.directories, f"{directory.path} is not among the log directories"
        self._logs[opened.name] = opened
        self._homes[opened.name] = directory
        self._changed[opened.name] = opened
        directory.logs_count += 1
        assert len(self._homes) == len(self._logs) >= directory.logs_count, (
            f"{opened.name} is added, and some log has no directory"
        )
        if not opened.durability.is_secured:
            self._unsecured.append(opened)
            # The log's names may not be synced; the checkpoint says that its id is, so nothing has to wait.
            opened.durability.is_secured = opened.name in directory.recovery_points

    def _give_way(self, twin: Log, opened: Log, directory: LogDirectory) -> bool:
        """Whether `opened` takes the place of its twin in another directory. The other is kept under another name.

        A crash within the last step of a move leaves both: the copy, which is synced, and the log, whose end may be
        lost. Whichever reaches further has everything.
        """
        name, home = opened.name, self._homes[opened.name]
        assert twin.name == name
        assert twin is not opened
        assert home is not directory, f"{name} is twice in {home.path}"
        is_further = twin.topic_id == opened.topic_id and (opened.epochs.latest, opened.log_end_offset) > (
            twin.epochs.latest,
            twin.log_end_offset,
        )
        log.warning("log.duplicated", log=str(name), kept=(directory if is_further else home).path)
        if is_further:
            self._move_aside(name, STRAY_DIRECTORY)
        else:
            self._put_aside(opened, directory, STRAY_DIRECTORY)
        return is_further

    # --- logs ---------------------------------------------------------------------------------------------------

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        now_ms: int = 0,
        directory_id: bytes = ZERO,
    ) -> Log:
        """The log of this partition: the one that is there, or a new one in the directory of that id, if it is online,
        otherwise in the one with the fewest.

        A log that belongs to another topic of the same name is moved aside. Raises KAFKA_STORAGE_ERROR.
        """
        name = PartitionName(topic, partition)
        self.make_way(topic, partition, topic_id)
        if name in self.unusable_logs:
            self._open_again(self.unusable_logs[name], config, now_ms)
        existing = self._logs.get(name)
        if existing is not None:
            assert existing.topic_id == topic_id, f"{name} is another topic's, and was not set aside"
            if existing.is_failed:
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name}: its directory is offline")
            existing.config = config
            return existing
        directory = self._place(name, directory_id)
        try:
            clear(self.disk, self.aside, directory, name)
            self._forget_former(directory, name)
            made = begin(self.disk, os.path.join(directory.path, str(name)), topic_id, config, now_ms)
        except OSError as problem:
            if not is_passing(problem):
                self.fail_directory(directory, problem)
            raise _refused(name, "create", problem) from problem
        self._add(directory, made)
        assert self._logs.get(name) is made, f"{name} is made, and another log is in service"
        return made

    def make_way(self, topic: str, partition: int, topic_id: bytes) -> None:
        """Set aside a log that has the name and belongs to another topic."""
        name = PartitionName(topic, partition)
        unusable = self.unusable_logs.get(name)
        if unusable is not None and not unusable.may_be_of(topic_id):
            self._put_unusable_aside(name)
        existing = self._logs.get(name)
        if existing is not None and existing.topic_id != topic_id:
            is_empty = existing.log_end_offset == 0
            self._move_aside(name, DELETE_DIRECTORY if is_empty else STRAY_DIRECTORY)

    def awaits_reopening(self, topic: str, partition: int) -> bool:
        """Whether the partition's log could not be opened for want of room or descriptors: `reopen` tries again."""
        name = PartitionName(topic, partition)
        unusable = self.unusable_logs.get(name)
        return unusable is not None and unusable.is_passing and name not in self.reopened

    def reopen(self, configs: Mapping[PartitionName, LogConfig], now_ms: int) -> None:
        """Try again to open these logs, for `create` to take them. Blocks: call it in a thread, and let the loop do
        nothing with these names meanwhile. Opening may recover whole segments, and syncs what it truncates.
        """
        for name, config in configs.items():
            if self.awaits_reopening(*name):
                self.reopened[name] = open_found(self.disk, self.unusable_logs[name].found, config, now_ms)

    def _open_again(self, unusable: Unusable, config: LogConfig, now_ms: int) -> None:
        """Take the log that a thread has opened; at a start, open it. Raises KAFKA_STORAGE_ERROR, and has a cause where
        there was no room, or no descriptor.
        """
        found = unusable.found
        if not unusable.is_passing:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{found.name}: {unusable.problem}")
        outcome = self.reopened.pop(found.name, None)
        self._take_opened(found, open_found(self.disk, found, config, now_ms) if outcome is None else outcome)

    def _take_opened(self, found: FoundLog, outcome: Log | Exception) -> None:
        if not isinstance(outcome, Log):
            self._note_unusable(found, outcome)
            raise _refused(found.name, "open", outcome) from outcome
        del self.unusable_logs[found.name]
        self._add(found.directory, outcome)
        assert found.name in self._logs, f"{found.name} was opened, and is not in service"

    def close(self, *, broker_epoch: int = -1, high_watermark_of: HighWatermark | None = None) -> None:
        """Close every log, as `OpenLogs` does, also those that a thread has opened and nothing has taken."""
        while self.reopened:
            name, outcome = self.reopened.popitem()
            with suppress(BrokerError):
                self._take_opened(self.unusable_logs[name].found, outcome)
        super().close(broker_epoch=broker_epoch, high_watermark_of=high_watermark_of)

    def _place(self, name: PartitionName, directory_id: bytes) -> LogDirectory:
        """Return the directory that a new log goes to."""
        if not self.online:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        demanded = [directory for directory in self.online if directory.directory_id == directory_id]
        free = [
            directory
            for directory in demanded or self.online
            if not self.aside.holds(os.path.join(directory.path, str(name)))
        ]
        if not free:
            problem = in_the_way()
            raise _refused(name, "create", problem) from problem
        return self._emptiest([directory for directory in free if not directory.is_cordoned] or free)

    def _forget_former(self, directory: LogDirectory, name: PartitionName) -> None:
        problem = directory.forget_problem
        if problem is not None and directory.remembers(name):  # a thread could not: the loop would wait for that disk
            raise OSError(problem.errno, problem.strerror, problem.filename) from problem
        directory.forget((name,), partial(self._logs_in, directory), self._spoken_for)

    def _emptiest(self, directories: list[LogDirectory]) -> LogDirectory:
        assert directories
        return min(directories, key=lambda directory: directory.logs_count)

    def replace(self, future: Log, directory: LogDirectory, now_ms: int) -> Log:
        """Put a finished copy in the place of its log; returns it as it is opened there. Raises KAFKA_STORAGE_ERROR,
        and then the log is where it was.

        Whatever can fail comes first. A crash in between leaves both under the name (`_give_way`).
        """
        try:
            clear(self.disk, self.aside, directory, future.name)
            self._forget_former(directory, future.name)
        except OSError as problem:
            raise _refused(future.name, "move", problem) from problem
        assert future.name in self._logs, f"{future.name} has no log that its copy could replace"
        moved = self.futures.promote(future, self._logs[future.name], directory, now_ms)
        self.delete(*moved.name)
        assert moved.name not in self._logs, f"{moved.name} is there still"
        self._add(directory, moved)
        assert self._logs.get(moved.name) is moved, f"{moved.name} is moved, and another log is in service"
        return moved

    def drop_future(self, path: str) -> None:
        """Rename a copy that is not wanted any more at once, so that no start goes on with it."""
        name = parse_future(os.path.basename(path))
        assert name is not None, f"{path} is no copy of a log"
        directory = next(directory for directory in self.directories if directory.path == os.path.dirname(path))
        self.aside.put(directory, name, path, DELETE_DIRECTORY)

    def delete(self, topic: str, partition: int) -> None:
        """Rename the log of a partition that left this broker at once; `remove_deleted` removes it."""
        self._move_aside(PartitionName(topic, partition), DELETE_DIRECTORY)

    def unusable(self, topic: str, partition: int) -> Unusable | None:
        """Return the partition's log that could not be opened, in a directory that is online."""
        unusable = self.unusable_logs.get(PartitionName(topic, partition))
        return unusable if unusable is not None and unusable.found.directory.is_online else None

    def set_aside(self, topic: str, partition: int) -> None:
        """Keep a damaged log under another name, to be looked at; a new one can take its place."""
        name = PartitionName(topic, partition)
        self._move_aside(name, STRAY_DIRECTORY)
        if self.unusable(topic, partition) is not None:
            self._put_unusable_aside(name)

    def remove_strays(self, known: Iterable[tuple[str, int]]) -> list[str]:
        """Move logs of partitions that the cluster does not place here aside; returns their names."""
        kept = {PartitionName(*name) for name in known}
        strays = [name for name in (*self._logs, *self.unusable_logs) if name not in kept]
        for name in strays:
            self.set_aside(*name)
        assert self._logs.keys() <= kept, f"{self._logs.keys() - kept} are strays, and in service"
        return [str(name) for name in strays]

    def _move_aside(self, name: PartitionName, suffix: str) -> None:
        gone = self._logs.pop(name, None)
        if gone is not None:
            home = self._homes.pop(name)
            self._changed.pop(name, None)
            home.logs_count -= 1
            assert home.logs_count >= 0
            assert len(self._homes) == len(self._logs), f"{name} has left, and some log has no directory"
            self._put_aside(gone, home, suffix)

    def _put_aside(self, gone: Log, directory: LogDirectory, suffix: str) -> None:
        size_bytes, delay_ms = gone.size_bytes, gone.config.file_delete_delay_ms
        gone.abandon()
        directory.left[gone.name] = None
        if directory.is_online:  # otherwise a start with it will see by the topic's id
            self.aside.put(directory, gone.name, gone.directory, suffix, size_bytes=size_bytes, delay_ms=delay_ms)

    def _put_unusable_aside(self, name: PartitionName) -> None:
        assert name in self.unusable_logs, f"{name} is not among the logs that could not be opened"
        found = self.unusable_logs.pop(name).found
        reopened = self.reopened.pop(name, None)
        if isinstance(reopened, Log):
            reopened.abandon()
        found.directory.left[name] = None
        if found.directory.is_online:
            self.aside.put(found.directory, name, found.path, STRAY_DIRECTORY)


def _refused(name: PartitionName, what: str, problem: Exception) -> BrokerError:
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name}: {what}: {problem}")


def _has_much_to_recover(disk: Disk, found_log: FoundLog) -> bool:
    """Whether a thread of its own is worth what it costs the others. Two that open small logs wait for each other
    at each call of the system, and take twice the time of one.
    """
    if found_log.directory.is_clean:
        return False
    try:
        last = next((name for name in reversed(disk.names(found_log.path)) if name.endswith(LOG)), None)
        return last is not None and disk.size(os.path.join(found_log.path, last)) > SMALL_BYTES_MAX
    except OSError:
        return False  # opening the log says why
