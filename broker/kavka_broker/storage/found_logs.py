"""What a start finds in the log directories, and which of it are logs in service.

A log directory may hold what a crash, a full disk or a disk that was away for a while has left: logs on their way out,
logs that were only begun, two logs of one name. The topic's id says what each is:

- No id and no records: its creation was not finished. Since the id is synced before the first record there never was
  one: it becomes the empty log of the topic that the cluster places here, unless a log of that name may be elsewhere;
  then it is removed. Where any other file lies in it, or it is a symbolic link, it is not Kavka's: it is a stray.
- Marked as removed: its removal goes on.
- Two of one name: those whose id the cluster does not know under this name are strays. If both are of the same topic,
  a move between directories was interrupted, and the opened logs decide.
"""

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage import partition_metadata, recovery
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.disk_errors import is_passing
from kavka_broker.storage.file_names import (
    CLUSTER_METADATA,
    DELETE_DIRECTORY,
    FUTURE_DIRECTORY,
    STRAY_DIRECTORY,
    PartitionName,
    parse_future,
    parse_partition,
)
from kavka_broker.storage.future_logs import FutureLogs
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.log_removal import has_records, remove_log
from kavka_broker.storage.new_logs import is_unused
from kavka_broker.storage.retired_logs import SetAside

log = get("storage")

#: What opening a log may meet in its files. Any other error is a defect of ours, and ends the start.
UNREADABLE: Final = (OSError, BrokerError, ProtocolViolation, struct.error, ValueError)
#: The id of the topic whose partition of this name the cluster places on this broker; ZERO where it places none.
KnownId = Callable[[PartitionName], bytes]


@dataclass(frozen=True, slots=True)
class FoundLog:
    """A log under its own name. `topic_id` is ZERO where it names none, None where that cannot be read; `owner` is then
    the topic that it may belong to.
    """

    directory: LogDirectory
    name: PartitionName
    topic_id: bytes | None
    owner: bytes
    is_half_made: bool = False
    not_readable: str = ""  # why nothing of it can be read, although its directory is well

    @property
    def path(self) -> str:
        return os.path.join(self.directory.path, str(self.name))


@dataclass(frozen=True, slots=True)
class Unusable:
    """A log that is there but could not be opened; nothing new of its topic may take its place."""

    found: FoundLog
    problem: Exception

    @property
    def cause(self) -> OSError | None:
        """The error of the disk, if the disk was the reason."""
        cause = self.problem if isinstance(self.problem, OSError) else self.problem.__cause__
        return cause if isinstance(cause, OSError) else None

    @property
    def has_failed(self) -> bool:
        """Whether this disk has failed for good."""
        return self.cause is not None and not is_passing(self.cause)

    @property
    def is_passing(self) -> bool:
        return self.cause is not None and is_passing(self.cause)

    def may_be_of(self, topic_id: bytes) -> bool:
        """Whether the log is this topic's, or its topic is unknown."""
        return self.found.owner in (topic_id, ZERO)


def open_found(disk: Disk, found: FoundLog, config: LogConfig, now_ms: int) -> Log | Exception:
    """Return the log, opened, or why it cannot be read. Blocks; may run in a thread: it changes nothing but files."""
    directory, name = found.directory, found.name
    if not directory.is_online:
        return OSError("its directory is offline")
    if found.not_readable:
        return _unusable(f"{found.path} cannot be read: {found.not_readable}; mend that, or remove the entry")
    if found.topic_id == ZERO:
        return _unusable(f"{found.path} has records and no topic id; write it to partition.metadata, or remove the log")
    try:
        opened = recovery.open_log(
            disk,
            found.path,
            config,
            recover=not directory.is_clean,
            recovery_point=directory.recovery_points.get(name, 0),
            log_start_offset=directory.log_starts.get(name, 0),
            now_ms=now_ms,
            cleaned_offset=directory.cleaned_offsets.get(name, 0),
            topic_id=found.topic_id,
        )
        opened.segments.release()  # otherwise a start would need as many descriptors as there are logs
        return opened
    except UNREADABLE as problem:
        return problem


def _unusable(reason: str) -> BrokerError:
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, reason)


class Search:
    """A search through the log directories. `failed` is told of a directory that cannot be read."""

    def __init__(
        self,
        disk: Disk,
        aside: SetAside,
        futures: FutureLogs,
        failed: Callable[[LogDirectory, OSError], None],
        known_id: KnownId | None,
    ) -> None:
        self._disk = disk
        self._aside = aside
        self._futures = futures
        self._failed = failed
        self._known_id = known_id

    def logs(self, directories: list[LogDirectory], *, are_all: bool = True) -> list[FoundLog]:
        """Return the logs in service, in the order of their directories; `are_all` unless others are offline."""
        by_name: dict[PartitionName, list[FoundLog]] = {}
        for directory in directories:
            for found_log in self._try_list(directory):
                by_name.setdefault(found_log.name, []).append(found_log)
        are_all = are_all and all(directory.is_online for directory in directories)
        made = (self._made(twins, are_all=are_all) for twins in by_name.values())
        kept = [found_log for twins in made for found_log in self._tell_apart(twins)]
        order = {directory.path: index for index, directory in enumerate(directories)}
        assert len({found.path for found in kept}) == len(kept), "a log is in service twice"
        return sorted(kept, key=lambda found: order[found.directory.path])

    def _try_list(self, directory: LogDirectory) -> list[FoundLog]:
        try:
            return self._list(directory)
        except OSError as problem:
            self._failed(directory, problem)
            return []

    def _list(self, directory: LogDirectory) -> list[FoundLog]:
        found = []
        for entry in self._disk.names(directory.path):
            path = os.path.join(directory.path, entry)
            if (name := parse_partition(entry)) is not None and name != CLUSTER_METADATA:
                found_log = self._look_at(directory, name, path)
                found += [] if found_log is None else [found_log]
            elif entry.endswith(DELETE_DIRECTORY) and (
                self._disk.is_directory(path) or self._disk.link_target(path) is not None
            ):
                self._aside.found(directory, path, DELETE_DIRECTORY)
            elif not self._disk.is_directory(path):
                continue
            elif entry.endswith(FUTURE_DIRECTORY) and (moving := parse_future(entry)) is not None:
                self._futures.find(directory, path, moving)
            elif entry.endswith(STRAY_DIRECTORY):
                self._aside.found(directory, path, STRAY_DIRECTORY)
        return found

    def _look_at(self, directory: LogDirectory, name: PartitionName, path: str) -> FoundLog | None:
        try:
            topic_id = partition_metadata.read(self._disk, path)
            # A name of a topic's partition is a directory: very many need not be asked.
            return (
                self._look_into(directory, name, path)
                if topic_id == ZERO
                else FoundLog(directory, name, topic_id, topic_id)
            )
        except BrokerError:
            return FoundLog(directory, name, None, self._owner(name))  # opening the log says why
        except OSError as problem:
            # The disk of the directory is not at fault: the entry leads to another one, or is another user's.
            may_be_log = self._known_id is None or self._owner(name) != ZERO
            if self._disk.link_target(path) is None and (may_be_log or not isinstance(problem, PermissionError)):
                raise
            return self._leave(directory, name, path, str(problem))

    def _look_into(self, directory: LogDirectory, name: PartitionName, path: str) -> FoundLog | None:
        """Return the log in `path`, which names no topic id. Raises OSError."""
        if not self._disk.is_directory(path):
            target = self._disk.link_target(path)
            return None if target is None else self._leave(directory, name, path, f"{target} is no directory")
        if partition_metadata.is_removed(self._disk, path):
            self._aside.put(directory, name, path, DELETE_DIRECTORY)
            return None
        is_half_made = not has_records(self._disk, path)
        return FoundLog(directory, name, ZERO, self._owner(name), is_half_made=is_half_made)

    def _leave(self, directory: LogDirectory, name: PartitionName, path: str, reason: str) -> FoundLog | None:
        """Leave an entry as it is that cannot be read. Where it has the name of a partition that the cluster places
        here it is that partition's log, which is elsewhere or is not readable.
        """
        log.warning("log.not_read", path=path, reason=reason)
        owner = self._owner(name)
        return None if owner == ZERO else FoundLog(directory, name, None, owner, not_readable=reason)

    def _made(self, twins: list[FoundLog], *, are_all: bool) -> list[FoundLog]:
        """Return the logs of one name, without those that were only begun."""
        made = [twin for twin in twins if not twin.is_half_made]
        is_only_one = are_all and len(twins) == 1
        for twin in twins:
            if twin.is_half_made and twin.directory.is_online:
                made += self._try_finish(twin, is_only_one=is_only_one)
        assert not any(twin.is_half_made for twin in made), f"a log of {twins[0].name} was only begun"
        return made

    def _try_finish(self, begun: FoundLog, *, is_only_one: bool) -> list[FoundLog]:
        try:
            return self._finish(begun, is_only_one=is_only_one)
        except OSError as problem:
            if not is_passing(problem):
                self._failed(begun.directory, problem)
            return []

    def _finish(self, begun: FoundLog, *, is_only_one: bool) -> list[FoundLog]:
        assert begun.is_half_made, f"{begun.path} may have records"
        assert begun.topic_id == ZERO, f"{begun.path} is a topic's"
        log.info("log.not_completed", path=begun.path)
        had_records = begun.directory.recovery_points.get(begun.name, 0) > 0
        is_owned = begun.owner != ZERO and not had_records and is_only_one
        if not is_unused(self._disk, begun.path) or (not is_owned and not remove_log(self._disk, begun.path)):
            log.warning("log.not_recognized", path=begun.path, reason="it has files that are not a log's, or is a link")
            self._aside.put(begun.directory, begun.name, begun.path, STRAY_DIRECTORY)
            return []
        if not is_owned:
            return []
        partition_metadata.write(self._disk, begun.path, begun.owner)
        begun.directory.recovery_points.pop(begun.name, None)  # the recovery point says that its id is synced
        return [replace(begun, topic_id=begun.owner, is_half_made=False)]

    def _owner(self, name: PartitionName) -> bytes:
        return ZERO if self._known_id is None else self._known_id(name)

    def _tell_apart(self, twins: list[FoundLog]) -> list[FoundLog]:
        if len(twins) < 2:
            return twins
        wanted = self._owner(twins[0].name)
        assert all(twin.name == twins[0].name for twin in twins), f"{twins[0].name} has other names too"
        known = [twin for twin in twins if twin.topic_id and twin.topic_id != ZERO and wanted in (ZERO, twin.topic_id)]
        kept = known or twins[:1]
        assert kept, f"nothing of {twins[0].name} would be in service"
        assert len({twin.path for twin in twins}) == len(twins), "a log is found twice"
        for twin in twins:
            if twin not in kept and twin.directory.is_online:
                log.warning("log.duplicated", log=str(twin.name), kept=kept[0].path, set_aside=twin.path)
                self._aside.put(twin.directory, twin.name, twin.path, STRAY_DIRECTORY)
        return kept
