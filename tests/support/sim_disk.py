"""A disk in memory that can lose power.

Every file has the bytes that processes see and the bytes that would survive; every name likewise. `sync` and
`sync_directory` make the one the other. `crash` throws the dice for all that was not synced: of the changes of names a
first part survives, of appended bytes any part of each sector, the rest reads as zeros or is not there. File systems
keep changes of names in order, ext4 those of all directories; with `has_journal_by_directory` each directory keeps its
own, which is all that POSIX promises. Handles from before a crash belong to a dead process and refuse to work.

Faults are plain attributes: `space_bytes` left on the disk, for names too; `fail_writes` and `fail_syncs` of what lies
under `fail_under`, which is everything unless said otherwise; `errors`, one for each kind of call that is to fail;
`lies_about`, of which paths a sync says that it is done and does nothing; `drops`, of which paths a sync that fails
drops what it should have written, as Linux does.
"""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Final, Literal

from kavka_broker.storage.disk import Buffer
from tests.support.sim_inode import SECTOR_BYTES, Change, Entry, Journal, SimDirectory, SimInode, SimLink

__all__ = ["SECTOR_BYTES", "DiskError", "SimDisk", "SimFile", "SimInode"]

#: What a name takes of the disk beside its letters.
NAME_BYTES: Final = 8
#: Of so many it is remembered which names they are made of.
PATHS_MAX: Final = 10_000

Operation = Literal[
    "open", "read", "append", "write", "truncate", "sync", "names", "make_directory", "rename", "remove", "lock"
]


@dataclass(slots=True)
class DiskError:
    """What the system says to these calls on paths that begin with `under`: `times` times, or until it is taken away.

    `read` is also what `read_file` does, `write` is `write_file`, `remove` is `remove_directory` too, and `sync` that
    of a file or a directory. A rename fails where its source or its target lies under.
    """

    operations: frozenset[Operation]
    under: str = ""
    number: int = errno.EIO
    times: int | None = None

    def meets(self, operation: Operation, path: str) -> bool:
        """Whether this call fails; one of `times` is used up then."""
        if operation not in self.operations or not path.startswith(self.under) or self.times == 0:
            return False
        if self.times is not None:
            self.times -= 1
        return True


class SimFile:
    """A handle on a file of a `SimDisk`."""

    __slots__ = ("_disk", "_generation", "_inode", "path")

    def __init__(self, disk: "SimDisk", path: str, inode: SimInode) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode
        self._generation = disk.generation

    def _check(self) -> SimInode:
        if self._generation != self._disk.generation:
            raise ValueError(f"{self.path} was opened before the crash")
        return self._inode

    @property
    def size(self) -> int:
        return len(self._inode.data)

    def append(self, piece: Buffer) -> None:
        inode = self._check()
        self._disk.meet("append", self.path)
        self._disk.take_space(len(piece), self.path)
        inode.data += piece
        inode.room = max(0, inode.room - len(piece))
        inode.modified_ms = self._disk.now_ms
        self._disk.changes += 1

    @property
    def room_bytes(self) -> int:
        return self._inode.room

    def make_room(self, size: int) -> None:
        inode = self._check()
        inode.room = max(inode.room, size)

    def end_room(self) -> None:
        self._check().room = 0

    def read(self, position: int, size: int) -> memoryview:
        inode = self._check()
        self._disk.meet("read", self.path)
        if inode.is_unreadable:
            inode.failed_reads += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO), self.path)
        if position + size > len(inode.data):
            raise ValueError(f"{self.path} has {len(inode.data)} bytes, not {position + size}")
        return memoryview(bytes(inode.data[position : position + size]))

    def truncate(self, size: int) -> None:
        inode = self._check()
        self._disk.meet("truncate", self.path)
        self._disk.give_space(max(0, len(inode.data) - size))
        inode.truncate(size)
        self._disk.changes += 1
        self._disk.cuts += 1

    def sync(self) -> None:
        self._disk.sync_inode(self._check(), self.path)

    def release(self) -> None:
        """Give back what is left of room."""
        self._inode.room = 0

    def close(self) -> None:
        """There is nothing to let go of."""


class SimLock:
    """A lock that dies with its process."""

    def __init__(self, disk: "SimDisk", path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        self._disk.locks.pop(self._path, None)


class SimDisk:
    """Files and directories in memory."""

    def __init__(self, *, space_bytes: int | None = None, now_ms: int = 0) -> None:
        self.space_bytes = space_bytes
        self.fail_writes = False
        self.fail_syncs = False
        self.fail_under = ""  # a path's beginning
        self.errors: list[DiskError] = []
        self.lies_about: Callable[[str], bool] = _nothing
        self.drops: Callable[[str], bool] = _nothing
        self.has_journal_by_directory = False
        self.is_strained = False
        self._asked_for_strain = 0
        self.now_ms = now_ms
        self.generation = 0
        self.changes = 0  # of bytes and names: grows with each
        self.cuts = 0  # of files, by the code that uses them
        self.locks: dict[str, None] = {}
        self._root = SimDirectory()
        self._journal = Journal()

    @property
    def strain_lasts(self) -> bool:
        """Every other eight looks: between them, batches wait until it does."""
        self._asked_for_strain += 1
        return self.is_strained and self._asked_for_strain % 16 >= 8

    # --- faults -------------------------------------------------------------------------------------------------

    def crash(self, random: Random) -> None:
        """Lose power, and come back with what survived."""
        self._journal.settle(random, by_directory=self.has_journal_by_directory)
        _settle_names(self._root)
        for _, inode in self.files():
            inode.settle(random)
        self._new_process()

    def kill(self) -> None:
        """The process dies, the machine does not: the page cache stays as it is."""
        for _, inode in self.files():
            inode.leave_room()
        self._new_process()

    def _new_process(self) -> None:
        self.generation += 1
        self.changes += 1
        self.locks.clear()

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """The medium forgets one bit."""
        inode = self._inode(path)
        inode.forget(position, inode.data[position] ^ (1 << bit))
        self.changes += 1

    def wipe(self, path: str, position: int, size: int) -> None:
        """The medium reads zeros where something was."""
        inode = self._inode(path)
        for at in range(position, position + size):
            inode.forget(at, 0)
        self.changes += 1

    def cut_short(self, path: str, size: int) -> None:
        """The medium has lost a file's end."""
        inode = self._inode(path)
        inode.truncate(size)
        inode.durable = inode.durable[:size]
        self.changes += 1

    def overwrite(self, path: str, data: bytes | None) -> None:
        """The medium has these bytes in the place of the file's, for good; None: the file is not there any more."""
        parent, name = self._place(path)
        self.changes += 1
        if data is None:
            parent.names.pop(name, None)
            parent.durable.pop(name, None)
            return
        inode = SimInode(self._inode(path).modified_ms)
        inode.data, inode.durable = bytearray(data), bytes(data)
        parent.names[name] = parent.durable[name] = inode

    def detach(self, path: str) -> SimDirectory:
        """A volume is not mounted: what was there is not, and its place is empty."""
        parent, name = self._place(path)
        volume = parent.names[name]
        assert isinstance(volume, SimDirectory), f"{path} is a file"
        self._journal.write()
        self.changes += 1
        parent.names[name] = parent.durable[name] = SimDirectory()
        return volume

    def attach(self, path: str, volume: SimDirectory) -> None:
        """A volume is there again, as it was."""
        parent, name = self._place(path)
        self._journal.write()
        self.changes += 1
        parent.names[name] = parent.durable[name] = volume

    def link(self, path: str, target: str) -> None:
        """A user makes a symbolic link, for good."""
        parent, name = self._place(path)
        self.changes += 1
        parent.names[name] = parent.durable[name] = SimLink(target)

    def files(self, path: str = "") -> Iterator[tuple[str, SimInode]]:
        """All that lie under a directory, with their paths."""
        for name, entry in self._directory(path).names.items():
            if isinstance(entry, SimInode):
                yield f"{path}/{name}", entry
            elif isinstance(entry, SimDirectory):
                yield from self.files(f"{path}/{name}")

    def peek(self, path: str) -> dict[str, SimInode]:
        """Files of a directory by name, as seen from outside, where no fault is met; none where it is not there."""
        found = self._find(path)
        names = found.names if isinstance(found, SimDirectory) else {}
        return {name: entry for name, entry in names.items() if isinstance(entry, SimInode)}

    def directories(self, path: str) -> list[str]:
        """The names of the directories in one, likewise."""
        found = self._find(path)
        names = found.names if isinstance(found, SimDirectory) else {}
        return sorted(name for name, entry in names.items() if isinstance(entry, SimDirectory))

    def has_durable_name(self, path: str, *, of_this_file: bool = True) -> bool:
        """Whether the name of this file, and those of its directories, would be there after a loss of power, as far as
        syncs have said the truth; also where nothing has the name. Without `of_this_file` it may be that of a former
        file, which another has replaced.
        """
        found: Entry | None = self._root
        for name in _names_of(path):
            if not isinstance(found, SimDirectory):
                return True  # a file has taken the place of a directory, and with it nothing has the name
            directory, found = found, found.names.get(name)
            if found is None:
                return True
            durable = directory.durable.get(name)
            is_replaced = not of_this_file and isinstance(durable, SimInode)
            if not (durable is found or is_replaced or directory.is_lied_about):
                return False
        return True

    @property
    def has_lost_pages(self) -> bool:
        """Whether files show bytes that no sync has written, or will write, though it has said so."""
        return any(inode.lost or inode.is_lied_about for _, inode in self.files())

    def meet(self, operation: Operation, *paths: str) -> None:
        """Raises the OSError that `errors` has for this call."""
        for error in self.errors:
            if any(error.meets(operation, path) for path in paths):
                raise OSError(error.number, os.strerror(error.number), paths[0])

    def take_space(self, size_bytes: int, path: str) -> None:
        if self.fail_writes and path.startswith(self.fail_under):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._take(size_bytes)

    def _take(self, size_bytes: int) -> None:
        if self.space_bytes is not None:
            if size_bytes > max(0, self.space_bytes):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.space_bytes -= size_bytes

    def give_space(self, size_bytes: int) -> None:
        if self.space_bytes is not None:
            self.space_bytes += size_bytes

    def check_sync(self, path: str) -> None:
        self.meet("sync", path)
        if self.fail_syncs and path.startswith(self.fail_under):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def sync_inode(self, inode: SimInode, path: str) -> None:
        try:
            self.check_sync(path)
        except OSError:
            if self.drops(path):
                inode.drop()
            raise
        if self.lies_about(path):
            inode.is_lied_about = True
        else:
            inode.sync()

    # --- the seam -----------------------------------------------------------------------------------------------

    def open(self, path: str) -> SimFile:
        self.meet("open", path)
        inode = self._find(path)
        if inode is None:
            self._take(_cost(path))
            inode = SimInode(self.now_ms)
            self._add(path, inode)
        if not isinstance(inode, SimInode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return SimFile(self, path, inode)

    def open_to_read(self, path: str, size_max: int | None = None) -> SimFile:
        del size_max  # room is no part of `data`
        self._inode(path)
        return self.open(path)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), SimDirectory)

    def names(self, path: str) -> list[str]:
        self.meet("names", path + "/")
        return sorted(self._directory(path).names)

    def make_directory(self, path: str) -> None:
        if self.is_directory(path):
            return
        parent = os.path.dirname(path)
        if parent not in ("", "/", path):
            self.make_directory(parent)
        self.meet("make_directory", path + "/")
        self._take(_cost(path))
        self._add(path, SimDirectory())

    def read_file(self, path: str) -> bytes:
        self.meet("read", path)
        return bytes(self._inode(path).data)

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.meet("write", path)
        parent, name = self._place(path)
        before = parent.names.get(name)
        self.take_space(len(data) + (_cost(path) if before is None else 0), path)
        inode = SimInode(self.now_ms)
        inode.data += data
        if durable:
            self._sync_new(inode, path)
        self._change((parent, name, inode))
        if isinstance(before, SimInode):
            self.give_space(len(before.data))
        if durable:
            self.sync_directory(os.path.dirname(path))

    def _sync_new(self, inode: SimInode, path: str) -> None:
        """What is not written is not kept."""
        try:
            self.sync_inode(inode, path)
        except OSError:
            self.give_space(len(inode.data))
            raise

    def sync_file(self, path: str) -> None:
        self.sync_inode(self._inode(path), path)

    def sync_directory(self, path: str) -> None:
        self.check_sync(path + "/")
        directory = self._directory(path)
        directory.is_lied_about = self.lies_about(path + "/")
        if not directory.is_lied_about:
            self._journal.write(directory if self.has_journal_by_directory else None)

    def rename(self, source: str, target: str) -> None:
        self.meet("rename", source, target)
        moved = self._entry(source)
        replaced = self._find(target)
        self._take(max(0, _cost(target) - _cost(source)) if replaced is None else 0)
        (old, name), (new, new_name) = self._place(source), self._place(target)
        self._change((old, name, None), (new, new_name, moved))
        if isinstance(replaced, SimInode):
            self.give_space(len(replaced.data) + _cost(source))

    def remove(self, path: str) -> None:
        self.meet("remove", path)
        entry = self._entry(path)
        if isinstance(entry, SimDirectory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self._change((*self._place(path), None))
        self.give_space((len(entry.data) if isinstance(entry, SimInode) else 0) + _cost(path))

    def remove_directory(self, path: str) -> None:
        self.meet("remove", path + "/")
        entry = self._entry(path)
        if not isinstance(entry, SimDirectory):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        if entry.names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self._change((*self._place(path), None))
        self.give_space(_cost(path))

    def link_target(self, path: str) -> str | None:
        parent, name = _parent_of(path)
        found = self._find(parent)
        entry = found.names.get(name) if isinstance(found, SimDirectory) else None
        return entry.target if isinstance(entry, SimLink) else None

    def size(self, path: str) -> int:
        return len(self._inode(path).data)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def space(self, path: str) -> tuple[int, int]:
        del path
        return -1, -1 if self.space_bytes is None else self.space_bytes

    def lock(self, path: str) -> SimLock:
        self.meet("lock", path)
        if path in self.locks:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        self.open(path)
        self.locks[path] = None
        return SimLock(self, path)

    # --- names --------------------------------------------------------------------------------------------------

    def _find(self, path: str) -> Entry | None:
        found: Entry | None = self._root
        for name in _names_of(path):
            if not isinstance(found, SimDirectory):
                return None
            found = found.names.get(name)
            if isinstance(found, SimLink):
                found = self._find(found.target)
        return found

    def _entry(self, path: str) -> Entry:
        """What has the name, be it a link."""
        parent, name = self._place(path)
        if name not in parent.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return parent.names[name]

    def _inode(self, path: str) -> SimInode:
        inode = self._find(path)
        if not isinstance(inode, SimInode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode

    def _directory(self, path: str) -> SimDirectory:
        directory = self._find(path)
        if not isinstance(directory, SimDirectory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return directory

    def _place(self, path: str) -> tuple[SimDirectory, str]:
        """The directory that has this name, or may have it."""
        parent, name = _parent_of(path)
        return self._directory(parent), name

    def _change(self, *changes: Change) -> None:
        self._journal.add(*changes)
        self.changes += 1

    def _add(self, path: str, entry: Entry) -> None:
        self._change((*self._place(path), entry))


@lru_cache(PATHS_MAX)
def _names_of(path: str) -> tuple[str, ...]:
    return tuple(filter(None, path.split("/")))


@lru_cache(PATHS_MAX)
def _parent_of(path: str) -> tuple[str, str]:
    return os.path.split(path)


def _cost(path: str) -> int:
    """What the name takes of its directory."""
    return NAME_BYTES + len(os.path.basename(path))


def _settle_names(directory: SimDirectory) -> None:
    """Only what survived is there."""
    directory.names = dict(directory.durable)
    directory.is_lied_about = False
    for entry in directory.names.values():
        if isinstance(entry, SimDirectory):
            _settle_names(entry)


def _nothing(path: str) -> bool:
    del path
    return False
