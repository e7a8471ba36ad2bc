"""All logs of a broker, over its log directories.

A new log goes to the directory that has the fewest. A directory that fails goes offline with all its logs; the others
go on. What takes time is made for threads and touches no log's structure: `flush_due`, `write_checkpoints`,
`remove_deleted`, `close`. What changes a log runs on the loop: `create`, `delete`, `retain`.

A log that nobody knows any more is moved aside (`-stray`), as Kafka does it, and never removed by itself: metadata that
was lost must not take the data with it. Copies on their way into another directory are `future_logs`.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage import checkpoints, partition_metadata
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.future_logs import FutureLogs
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory, UnusableDirectory, open_directories
from kavka_broker.storage.names import (
    DELETE_DIRECTORY,
    FUTURE_DIRECTORY,
    STRAY_DIRECTORY,
    PartitionName,
    aside_directory,
    parse_future,
    parse_partition,
)

__all__ = ["LogManager", "UnusableDirectory"]

log = get("storage")

#: Recovery reads whole segments: more readers than this make a disk slower, not faster.
RECOVERY_THREADS_MAX: Final = 2
CLUSTER_METADATA: Final = PartitionName("__cluster_metadata", 0)
Progress = Callable[[int, int, str], None]
HighWatermark = Callable[[Log], int]


class LogManager:
    """The logs by topic and partition. `open` takes the directories, `load` opens what is in them."""

    def __init__(
        self,
        disk: Disk,
        cluster_id: str,
        directories: list[LogDirectory],
        *,
        random_bytes: Callable[[int], bytes] = os.urandom,
        threads_max: int = 4,
    ) -> None:
        self.disk = disk
        self._random_bytes = random_bytes
        self._threads_max = threads_max
        self.cluster_id = cluster_id
        self.directories = directories
        # Told when a directory has failed; its logs are offline already.
        self.on_offline: Callable[[LogDirectory], None] = _nothing
        self._logs: dict[PartitionName, Log] = {}
        self._homes: dict[PartitionName, LogDirectory] = {}
        # Logs that are there but could not be opened; nothing new may take their place.
        self._unusable: dict[PartitionName, str] = {}
        self.futures = FutureLogs(disk, random_bytes, self._fail)
        self._is_loaded = False
        self._deleted_directories: list[str] = []

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

    # --- start --------------------------------------------------------------------------------------------------

    def load(
        self,
        config_of: Callable[[str], LogConfig],
        now_ms: int,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Open every log, several at a time; after an unclean stop this recovers them. Blocks.

        `progress` is called with how many are open, how many there are, and the name of the last one.
        """
        found = [(directory, name) for directory in self.online for name in self._log_names(directory)]
        opening = partial(self._open, config_of=config_of, now_ms=now_ms)
        with side_by_side(min(self._threads_max, RECOVERY_THREADS_MAX), "recovery") as mapped:
            for count, (directory, opened) in enumerate(mapped(lambda place: opening(*place), found), 1):
                if opened is None:
                    continue
                self._add(directory, opened)
                if progress is not None:
                    progress(count, len(found), str(opened.name))
        self._is_loaded = True

    def _log_names(self, directory: LogDirectory) -> list[PartitionName]:
        names = []
        for entry in self.disk.names(directory.path):
            path = os.path.join(directory.path, entry)
            if not self.disk.is_directory(path):
                continue
            if entry.endswith(FUTURE_DIRECTORY) and (moving := parse_future(entry)) is not None:
                self.futures.find(directory, path, moving)
                continue
            if entry.endswith(DELETE_DIRECTORY):
                self._deleted_directories.append(path)
                continue
            name = parse_partition(entry)
            if name is None:
                if entry.endswith(STRAY_DIRECTORY):
                    log.warning("directory.ignored", path=path)
                continue
            if name != CLUSTER_METADATA:
                names.append(name)
        return names

    def _open(
        self,
        directory: LogDirectory,
        name: PartitionName,
        *,
        config_of: Callable[[str], LogConfig],
        now_ms: int,
    ) -> tuple[LogDirectory, Log | None]:
        try:
            return directory, Log.open(
                self.disk,
                os.path.join(directory.path, str(name)),
                config_of(name.topic),
                recover=not directory.is_clean,
                recovery_point=directory.recovery_points.get(name, 0),
                log_start_offset=directory.log_starts.get(name, 0),
                now_ms=now_ms,
            )
        except (OSError, BrokerError) as problem:
            log.error("log.unusable", log=str(name), directory=directory.path, reason=str(problem))
            self._unusable[name] = str(problem)
            if isinstance(problem, OSError) or isinstance(problem.__cause__, OSError):
                self._fail(directory)
            return directory, None

    def _add(self, directory: LogDirectory, opened: Log) -> None:
        twin = self._logs.get(opened.name)
        if twin is not None and not self._give_way(twin, opened, directory):
            return
        opened.on_recovery_point_lowered = partial(self._write_recovery_points, directory)
        opened.on_failed = partial(self._log_failed, opened)
        self._logs[opened.name] = opened
        self._homes[opened.name] = directory

    def _give_way(self, twin: Log, opened: Log, directory: LogDirectory) -> bool:
        """Whether `opened` takes the place of its twin in another directory. The other is kept under another name.

        A crash within the last step of a move leaves both: the copy, which is synced, and the log, whose end may be
        lost. Whichever reaches further has everything.
        """
        name, home = opened.name, self._homes[opened.name]
        if twin.topic_id != opened.topic_id or twin.topic_id == ZERO:
            raise UnusableDirectory(f"{name} is in {home.path} and in {directory.path}; move one of them away")
        is_further = (opened.latest_epoch, opened.log_end_offset) > (twin.latest_epoch, twin.log_end_offset)
        log.warning("log.twins", log=str(name), kept=(directory if is_further else home).path)
        if is_further:
            self._move_aside(name, STRAY_DIRECTORY)
        else:
            self._rename_aside(opened, directory, STRAY_DIRECTORY)
        return is_further

    # --- logs ---------------------------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> Log | None:
        return self._logs.get(PartitionName(topic, partition))

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
        else in the one with the fewest.

        A log that belongs to another topic of the same name is moved aside. Raises KAFKA_STORAGE_ERROR.
        """
        name = PartitionName(topic, partition)
        if name in self._unusable:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name}: {self._unusable[name]}")
        existing = self._logs.get(name)
        if existing is not None:
            if existing.is_failed:
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name}: its directory is offline")
            if existing.topic_id in (topic_id, ZERO):
                try:
                    self._identify(existing, topic_id)
                except OSError as problem:
                    raise _refused(name, "identify", problem) from problem
                existing.config = config
                return existing
            self._move_aside(name, STRAY_DIRECTORY)
        directory = next((one for one in self.online if one.directory_id == directory_id), None) or self._emptiest()
        path = os.path.join(directory.path, str(name))
        try:
            self._forget_former(directory, name)
            self.disk.make_directory(path)
            partition_metadata.write(self.disk, path, topic_id)
            made = Log.open(self.disk, path, config, recover=False, now_ms=now_ms)
        except OSError as problem:
            raise _refused(name, "create", problem) from problem
        self._add(directory, made)
        return made

    def _forget_former(self, directory: LogDirectory, name: PartitionName) -> None:
        """What checkpoints say of an earlier log of this name: a crash would cut a new one at the old one's start."""
        if directory.vouches_for(name):
            self._write_checkpoints(directory, None)
        if name in directory.high_watermarks:
            with directory.checkpoint_lock:
                marks = {other: offset for other, offset in directory.high_watermarks.items() if other != name}
                directory.write(checkpoints.HIGH_WATERMARKS, marks)

    def _identify(self, existing: Log, topic_id: bytes) -> None:
        if existing.topic_id != topic_id:
            partition_metadata.write(self.disk, existing.directory, topic_id)
            existing.topic_id = topic_id

    def _emptiest(self) -> LogDirectory:
        counts = {directory.path: 0 for directory in self.online}
        if not counts:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        for home in self._homes.values():
            if home.path in counts:
                counts[home.path] += 1
        return min(self.online, key=lambda directory: counts[directory.path])

    def directory_of(self, topic: str, partition: int) -> LogDirectory | None:
        return self._homes.get(PartitionName(topic, partition))

    def replace(self, future: Log, directory: LogDirectory, now_ms: int) -> Log:
        """Put a finished copy in the place of its log; returns it as it is opened there. Raises KAFKA_STORAGE_ERROR,
        and then the log is where it was.

        Whatever can fail comes first. A crash in between leaves both under the name (`_give_way`).
        """
        try:
            self._forget_former(directory, future.name)
        except OSError as problem:
            raise _refused(future.name, "move", problem) from problem
        moved = self.futures.settle(future, directory, now_ms)
        self.delete(*moved.name)
        self._add(directory, moved)
        return moved

    def drop_future(self, path: str) -> None:
        """A copy that nobody wants any more: renamed at once, so that no start goes on with it."""
        name = parse_future(os.path.basename(path))
        assert name is not None, f"{path} is no copy of a log"
        gone = os.path.join(
            os.path.dirname(path), aside_directory(name, self._random_bytes(16).hex(), DELETE_DIRECTORY)
        )
        try:
            self.disk.rename(path, gone)
        except OSError as problem:
            log.warning("log.rename_failed", log=str(name), path=path, reason=str(problem))
        else:
            self._deleted_directories.append(gone)

    def high_watermark(self, topic: str, partition: int) -> int:
        """What the last run knew to be committed, between the log's start and its end."""
        name = PartitionName(topic, partition)
        home, opened = self._homes[name], self._logs[name]
        known = home.high_watermarks.get(name, opened.log_start_offset)
        return max(opened.log_start_offset, min(known, opened.log_end_offset))

    def delete(self, topic: str, partition: int) -> None:
        """The partition left this broker: its log is renamed at once, and removed by `remove_deleted`."""
        path = self._move_aside(PartitionName(topic, partition), DELETE_DIRECTORY)
        if path is not None:
            self._deleted_directories.append(path)

    def set_aside(self, topic: str, partition: int) -> None:
        """The log is damaged: it is kept under another name, to be looked at, and a new one can take its place."""
        self._move_aside(PartitionName(topic, partition), STRAY_DIRECTORY)

    def remove_strays(self, known: Iterable[tuple[str, int]]) -> list[str]:
        """Move logs of partitions that the cluster does not place here aside; returns their names."""
        kept = {PartitionName(*one) for one in known}
        strays = [name for name in self._logs if name not in kept]
        for name in strays:
            path = self._move_aside(name, STRAY_DIRECTORY)
            log.warning("log.stray", log=str(name), moved_to=path)
        return [str(name) for name in strays]

    def _move_aside(self, name: PartitionName, suffix: str) -> str | None:
        gone = self._logs.pop(name, None)
        return None if gone is None else self._rename_aside(gone, self._homes.pop(name), suffix)

    def _rename_aside(self, gone: Log, directory: LogDirectory, suffix: str) -> str | None:
        gone.abandon()
        path = os.path.join(directory.path, aside_directory(gone.name, self._random_bytes(16).hex(), suffix))
        try:
            self.disk.rename(gone.directory, path)
        except OSError as problem:
            log.error("log.rename_failed", log=str(gone.name), reason=str(problem))
            return None
        return path

    # --- upkeep -------------------------------------------------------------------------------------------------

    def flush_due(self, now_ms: int) -> None:
        """Sync rolled segments, and what is older than `flush.ms`. Blocks: call it in a thread."""
        for one in self:
            is_late = one.unflushed_messages > 0 and now_ms - one.flushed_ms >= one.config.flush_ms
            if not one.is_failed and (is_late or one.has_unflushed_segments):
                one.flushed_ms = now_ms
                self._try_flush(one)

    def _try_flush(self, one: Log) -> None:
        with suppress(BrokerError):  # its directory knows already
            one.flush()

    def _log_failed(self, one: Log) -> None:
        """Wherever it was found: in a sync within an append too, whose leader must not go on refusing for ever."""
        home = self._homes.get(one.name)
        if home is not None and self._logs.get(one.name) is one:
            self._fail(home)

    def retain(
        self, now_ms: int, high_watermark_of: HighWatermark | None = None, *, expiration_ms: int = 86_400_000
    ) -> int:
        """Delete what the topics' retention gives up, and forget silent producers; returns how many segments went."""
        count = 0
        for one in self:
            if one.is_failed:
                continue
            one.producers.expire(now_ms, expiration_ms)
            high_watermark = one.log_end_offset if high_watermark_of is None else high_watermark_of(one)
            try:
                count += one.delete_expired(now_ms, high_watermark)
            except BrokerError as problem:
                log.error("retention.failed", log=str(one.name), reason=str(problem))
            one.release_idle()
        return count

    def remove_deleted(self) -> None:
        """Remove what was renamed away. Blocks: call it in a thread."""
        for one in self:
            one.remove_deleted()
        paths, self._deleted_directories = self._deleted_directories, []
        for path in paths:
            try:
                self.disk.remove_tree(path)
            except FileNotFoundError:
                continue
            except OSError as problem:
                log.warning("directory.not_removed", path=path, reason=str(problem))
                self._deleted_directories.append(path)

    def write_checkpoints(self, high_watermark_of: HighWatermark | None = None) -> None:
        """Write down recovery points, log starts and high watermarks. Blocks: call it in a thread."""
        for directory in self.online:
            try:
                self._write_checkpoints(directory, high_watermark_of)
            except OSError as problem:
                log.error("checkpoint.failed", directory=directory.path, reason=str(problem))

    def _write_checkpoints(self, directory: LogDirectory, high_watermark_of: HighWatermark | None) -> None:
        with directory.checkpoint_lock:
            logs = self._logs_in(directory)
            points = self._kept(directory.recovery_points) | {one.name: one.recovery_point for one in logs}
            directory.write(checkpoints.RECOVERY_POINTS, points)
            moved = (one for one in logs if one.log_start_offset > one.segments[0].base_offset)
            starts = self._kept(directory.log_starts) | {one.name: one.log_start_offset for one in moved}
            directory.write(checkpoints.LOG_STARTS, starts)
            if high_watermark_of is not None:
                marks = self._kept(directory.high_watermarks) | {one.name: high_watermark_of(one) for one in logs}
                directory.write(checkpoints.HIGH_WATERMARKS, marks)

    def _kept(self, offsets: Mapping[PartitionName, int]) -> dict[PartitionName, int]:
        """What a checkpoint says of logs that could not be opened: it is all that is known of them."""
        return {name: offsets[name] for name in self._unusable if name in offsets}

    def _write_recovery_points(self, directory: LogDirectory) -> None:
        with directory.checkpoint_lock:
            logs = self._logs_in(directory)
            points = self._kept(directory.recovery_points) | {one.name: one.recovery_point for one in logs}
            directory.write(checkpoints.RECOVERY_POINTS, points)

    def _logs_in(self, directory: LogDirectory) -> list[Log]:
        return [one for one in self if self._homes.get(one.name) is directory]

    def _fail(self, directory: LogDirectory) -> None:
        if not directory.is_online:
            return
        directory.is_online = False
        log.error("directory.offline", directory=directory.path, logs=len(self._logs_in(directory)))
        for one in self._logs_in(directory):
            one.is_failed = True
        self.on_offline(directory)

    # --- stop ---------------------------------------------------------------------------------------------------

    def close(self, *, broker_epoch: int = -1, high_watermark_of: HighWatermark | None = None) -> None:
        """Close every log and mark the directories clean. Blocks: call it in a thread."""
        if not self._is_loaded:
            self._leave_as_found(broker_epoch)
            return
        with side_by_side(self._threads_max, "closing") as mapped:
            list(mapped(self._close, self))
        for directory in self.online:
            try:
                self._write_checkpoints(directory, high_watermark_of)
                if self._is_clean(directory):
                    directory.mark_clean(broker_epoch)
            except OSError as problem:
                log.error("directory.not_clean", directory=directory.path, reason=str(problem))
        for directory in self.directories:
            directory.release()

    def _is_clean(self, directory: LogDirectory) -> bool:
        """Whether no log of it needs recovery.

        One does whose sync has failed: nobody knows what is on the disk. And one that could not be opened, unless the
        last stop was clean.
        """
        if self._unusable and not directory.is_clean:
            return False
        return not any(one.is_failed for one in self._logs_in(directory))

    def _leave_as_found(self, broker_epoch: int) -> None:
        """The start did not come to its end: what was clean stays so, what needs recovery still does. A registration on
        the way here has taken the place of the one that the mark named.
        """
        for one in self:
            one.abandon()
        for directory in self.directories:
            if directory.is_online and directory.is_clean and directory.broker_epoch is not None:
                directory.mark_clean(broker_epoch if broker_epoch >= 0 else directory.broker_epoch)
            directory.release()

    def _close(self, one: Log) -> None:
        try:
            one.close()
        except BrokerError:
            self._fail(self._homes[one.name])


@contextmanager
def side_by_side(threads_max: int, name: str) -> Iterator[Callable[..., Iterable[Any]]]:
    """A `map` over that many threads; with one, the caller's own does it and no other is started."""
    if threads_max == 1:
        yield map
        return
    with ThreadPoolExecutor(threads_max, name) as pool:
        yield pool.map


def _refused(name: PartitionName, what: str, problem: OSError) -> BrokerError:
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name}: {what}: {problem.strerror}")


def _nothing(directory: LogDirectory) -> None:
    del directory
