"""Logs that are out of service, until their bytes are freed.

    orders-3.<id>-delete    deleted: removed after `file.delete.delay.ms`, or as soon as its volume is short of room
    orders-3.<id>-stray     unknown or damaged: kept for `kavka.log.stray.retention.ms`, to be looked at

A log leaves its name at once, by a rename. A new name takes room in its directory, and a full disk may have none. Then
the log is still known here: no other log takes its place, and the rename is tried again. A deleted one is removed where
it stands if that does not help; its `partition.metadata` says so first, for half a log must never be taken for a whole
one. A rename that fails for another reason is a failed directory.

How long a stray has been one is written down in it: its files are older.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kavka_broker.logs import get
from kavka_broker.storage import partition_metadata
from kavka_broker.storage.disk import Disk, is_passing
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.names import (
    DELETE_DIRECTORY,
    PARTITION_METADATA,
    STRAY_DIRECTORY,
    PartitionName,
    aside_directory,
)

log = get("storage")

#: In a stray: since when it is one, in milliseconds.
SINCE: Final = "set-aside"
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
                self._remove_in_place(aside)
                return True
            return False
        if aside.since_ms < 0:
            self._measure(aside, now_ms)
        age_ms = now_ms - aside.since_ms
        if aside.suffix == STRAY_DIRECTORY:
            if age_ms < stray_retention_ms:
                return False
            log.warning("stray.removed", path=aside.path, bytes=aside.size_bytes)
        elif age_ms < aside.delay_ms and aside.directory.has_room:
            return False
        assert aside.is_renamed, f"{aside.path} is the name of a log"
        self._disk.remove_tree(aside.path)
        return True

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

    def _remove_in_place(self, aside: Aside) -> None:
        assert aside.suffix == DELETE_DIRECTORY, f"{aside.path} is a stray, which is kept"
        assert not aside.is_renamed, f"{aside.path} has left its place"
        partition_metadata.mark_removed(self._disk, aside.path)
        for entry in self._disk.names(aside.path):
            if entry != PARTITION_METADATA:
                self._disk.remove(os.path.join(aside.path, entry))
        # The mark goes last.
        self._disk.sync_directory(aside.path)
        self._disk.remove_tree(aside.path)
        log.info("log.removed", path=aside.path, bytes=aside.size_bytes)

    def _measure(self, aside: Aside, now_ms: int) -> None:
        files = [os.path.join(aside.path, entry) for entry in self._disk.names(aside.path) if entry != SINCE]
        aside.size_bytes = sum(self._disk.size(file) for file in files)
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
