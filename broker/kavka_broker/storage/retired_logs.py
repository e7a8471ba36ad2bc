"""Logs that are out of service, until their bytes are freed.

    orders-3.<id>-delete    deleted: removed after `file.delete.delay.ms`, or as soon as its volume is short of room
    orders-3.<id>-stray     unknown or damaged: kept for `kavka.log.stray.retention.ms`, to be looked at

A log leaves its name at once, by a rename. A new name takes room in its directory, and a full disk may have none. Then
the log is still known here: no other log takes its place, and the rename is tried again. A deleted one is removed where
it stands if that does not help; its `partition.metadata` says so first, for half a log must never be taken for a whole
one. A rename that fails for another reason is a failed directory.

How long a stray has been one is written down in it: its files are older.

Only files of logs are removed. A stray that has any other file, or is a symbolic link or a file, is never removed: a
user made it. A deleted log with other files loses its own files alone.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kavka_broker.logs import get
from kavka_broker.storage import partition_metadata
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.disk_errors import is_passing
from kavka_broker.storage.file_names import (
    DELETE_DIRECTORY,
    PARTITION_METADATA,
    SINCE,
    STRAY_DIRECTORY,
    PartitionName,
    aside_directory,
    is_partition_file,
)
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.log_removal import remove_files, remove_log, unknown_files

log = get("storage")

STRAY_RETENTION_MS: Final = 7 * 24 * 3600 * 1000


@dataclass(slots=True)
class Aside:
    """A log that is out of service. `path` is under its former name until `is_renamed`."""

    directory: LogDirectory
    path: str
    target: str
    suffix: str
    size_bytes: int = -1
    delay_ms: int = 0
    since_ms: int = -1
    is_renamed: bool = False
    is_told: bool = False
    is_kept: bool = False  # the log says already that unknown files keep it


class SetAside:
    """What is out of service in all log directories. `failed` is told of a directory whose disk has failed.

    `put` and `found` run on the loop, or before it starts; `free` in a thread beside them.
    """

    def __init__(
        self, disk: Disk, random_bytes: Callable[[int], bytes], failed: Callable[[LogDirectory, OSError], None]
    ) -> None:
        self._disk = disk
        self._random_bytes = random_bytes
        self._failed = failed
        self._all: dict[str, Aside] = {}

    def __len__(self) -> int:
        return len(self._all)

    def put(
        self,
        directory: LogDirectory,
        name: PartitionName,
        path: str,
        suffix: str,
        *,
        size_bytes: int = -1,
        delay_ms: int = 0,
    ) -> None:
        """Take the log in `path` out of service. Its files must be closed."""
        assert os.path.dirname(path) == directory.path, f"{path} is not in {directory.path}"
        assert suffix in (DELETE_DIRECTORY, STRAY_DIRECTORY), suffix
        assert delay_ms >= 0, delay_ms
        target = os.path.join(directory.path, aside_directory(name, self._random_bytes(16).hex(), suffix))
        aside = Aside(directory, path, target, suffix, size_bytes, delay_ms)
        self._all[path] = aside
        if suffix == STRAY_DIRECTORY:
            log.warning("stray.moved", log=str(name), moved_to=target, bytes=size_bytes)
        try:
            self._try_rename(aside)
        except FileNotFoundError:
            self._forget(aside)

    def found(self, directory: LogDirectory, path: str, suffix: str) -> None:
        """A start has come across what an earlier life has set aside."""
        assert path not in self._all, f"{path} is found twice"
        self._all[path] = Aside(directory, path, path, suffix, is_renamed=True)

    def holds(self, path: str) -> bool:
        """Whether a log that is out of service still has this place."""
        aside = self._all.get(path)
        return aside is not None and not aside.is_renamed

    def count(self, directory: LogDirectory, suffix: str) -> tuple[int, int]:
        """How many logs of this kind are set aside in the directory, and their bytes as far as they are known."""
        found = [aside for aside in list(self._all.values()) if aside.directory is directory and aside.suffix == suffix]
        return len(found), sum(max(0, aside.size_bytes) for aside in found)

    def free(self, now_ms: int, *, stray_retention_ms: int = STRAY_RETENTION_MS) -> None:
        """Remove what has been aside for long enough. Blocks: call it in a thread."""
        for aside in list(self._all.values()):
            if not aside.directory.is_online:
                continue
            try:
                is_gone = self._free(aside, now_ms, stray_retention_ms)
            except FileNotFoundError:
                is_gone = True
            except OSError as problem:
                self._tell(aside, problem)
                continue
            if is_gone:
                self._forget(aside)

    def _free(self, aside: Aside, now_ms: int, stray_retention_ms: int) -> bool:
        if not aside.is_renamed and not self._try_rename(aside):
            if aside.suffix == DELETE_DIRECTORY and aside.directory.is_online:
                return self._remove_in_place(aside)
            return False
        if aside.since_ms < 0:
            if aside.suffix == STRAY_DIRECTORY and not self._is_only_log(aside):
                return False
            self._measure(aside, now_ms)
        age_ms = now_ms - aside.since_ms
        if aside.suffix == STRAY_DIRECTORY:
            if age_ms < stray_retention_ms or not self._is_only_log(aside):
                return False
            log.warning("stray.removed", path=aside.path, bytes=aside.size_bytes)
        elif age_ms < aside.delay_ms and aside.directory.has_room:
            return False
        assert aside.is_renamed, f"{aside.path} is the name of a log"
        return self._remove(aside)

    def _is_only_log(self, aside: Aside) -> bool:
        """Whether a stray is a directory that holds files of a log and nothing else. Raises OSError."""
        if self._disk.link_target(aside.path) is None and self._disk.is_directory(aside.path):
            unknown = unknown_files(self._disk, aside.path)
        else:
            unknown = [os.path.basename(aside.path)]
        if unknown:
            self._tell_kept(aside, unknown)
        return not unknown

    def _remove(self, aside: Aside) -> bool:
        """Remove the files of a log; returns whether nothing is left. Raises OSError."""
        if remove_log(self._disk, aside.path):
            return True
        aside.size_bytes = 0
        self._tell_kept(aside, unknown_files(self._disk, aside.path))
        return False

    def _tell_kept(self, aside: Aside, unknown: list[str]) -> None:
        if not aside.is_kept:
            aside.is_kept = True
            log.warning("log.kept", path=aside.path, unknown_files=len(unknown), first=next(iter(unknown), ""))

    def _forget(self, aside: Aside) -> None:
        # Another log may have had the place since, and may have been put out of service in its turn.
        if self._all.get(aside.path) is aside:
            del self._all[aside.path]

    def _try_rename(self, aside: Aside) -> bool:
        """Whether it has left its place. Raises FileNotFoundError where it is gone: what comes there is another's."""
        try:
            self._disk.rename(aside.path, aside.target)
        except FileNotFoundError:
            raise
        except OSError as problem:
            self._tell(aside, problem)
            if not is_passing(problem):
                self._failed(aside.directory, problem)
            return False
        assert not aside.is_renamed, f"{aside.path} is renamed twice"
        former, aside.path, aside.is_renamed = aside.path, aside.target, True
        self._all[aside.path] = aside
        self._all.pop(former, None)
        return True

    def _remove_in_place(self, aside: Aside) -> bool:
        """Free a deleted log where it stands; returns whether nothing is left. Raises OSError."""
        assert aside.suffix == DELETE_DIRECTORY, f"{aside.path} is a stray, which is kept"
        assert not aside.is_renamed, f"{aside.path} has left its place"
        if self._disk.link_target(aside.path) is None:
            partition_metadata.mark_removed(self._disk, aside.path)
            entries = self._disk.names(aside.path)
            remove_files(self._disk, aside.path, [entry for entry in entries if entry != PARTITION_METADATA])
            # The mark goes last.
            self._disk.sync_directory(aside.path)
            if unknown := unknown_files(self._disk, aside.path):
                self._tell_kept(aside, unknown)
                return False
        is_gone = self._remove(aside)
        if is_gone:
            log.info("log.removed", path=aside.path, bytes=aside.size_bytes)
        return is_gone

    def _measure(self, aside: Aside, now_ms: int) -> None:
        is_link = self._disk.link_target(aside.path) is not None
        entries = [] if is_link else [entry for entry in self._disk.names(aside.path) if is_partition_file(entry)]
        aside.size_bytes = sum(self._disk.size(os.path.join(aside.path, entry)) for entry in entries if entry != SINCE)
        aside.since_ms = self._since(aside, now_ms) if aside.suffix == STRAY_DIRECTORY else now_ms

    def _since(self, aside: Aside, now_ms: int) -> int:
        assert aside.suffix == STRAY_DIRECTORY, f"{aside.path} goes, however old it is"
        assert aside.is_renamed, f"{aside.path} is the name of a log"
        path = os.path.join(aside.path, SINCE)
        try:
            return min(now_ms, int(self._disk.read_file(path)))
        except (FileNotFoundError, ValueError):
            with suppress(OSError):  # on a full disk it counts from the start of this process
                self._disk.write_file(path, b"%d\n" % now_ms, durable=False)
            return now_ms

    def _tell(self, aside: Aside, problem: OSError) -> None:
        if not aside.is_told:
            aside.is_told = True
            log.error("log.not_moved", path=aside.path, reason=str(problem), tries="again")
