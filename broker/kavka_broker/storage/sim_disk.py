"""A disk in memory that can lose power.

Every file has the bytes that processes see and the bytes that would survive; every name likewise. `sync` and
`sync_directory` make the one the other. `crash` throws the dice for all that was not synced: of the changes of names a
first part survives (file systems keep them in order), of appended bytes any part of each sector, the rest reads as
zeros or is not there. Handles from before a crash belong to a dead process and refuse to work.

Faults are plain attributes: `space_bytes` left on the disk; `fail_writes` and `fail_syncs` of what lies under
`fail_under`, which is everything unless said otherwise; and `errors`, one for each kind of call that is to fail.
"""

import errno
import os
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from kavka_broker.storage.disk import Buffer

SECTOR_BYTES: Final = 512

Operation = Literal[
    "open", "read", "append", "write", "truncate", "sync", "names", "make_directory", "rename", "remove", "lock"
]


@dataclass(slots=True)
class DiskError:
    """What the system says to these calls on paths that begin with `under`: `times` times, or until it is taken away.

    `read` is also what `read_file` does, `write` is `write_file`, `remove` is `remove_tree` too, and `sync` that of a
    file or a directory. A rename fails where its source or its target lies under.
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


class SimInode:
    """The bytes of one file: as they are, and as they would be after a crash."""

    __slots__ = ("data", "durable", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        self.data = bytearray()
        self.durable = b""
        self.modified_ms = modified_ms

    def settle(self, random: Random) -> None:
        """Power is lost: decide what of the unsynced bytes is there."""
        size = random.choice((len(self.durable), len(self.data), self._between(random)))
        settled = bytearray(self.durable[:size].ljust(size, b"\0"))
        for start in range(0, size, SECTOR_BYTES):
            end = min(start + SECTOR_BYTES, size)
            written = self.data[start:end]
            if random.random() < 0.7:
                settled[start : start + len(written)] = written
        self.data, self.durable = settled, bytes(settled)

    def _between(self, random: Random) -> int:
        return random.randint(*sorted((len(self.durable), len(self.data))))


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
        inode.modified_ms = self._disk.now_ms

    def read(self, position: int, size: int) -> memoryview:
        inode = self._check()
        self._disk.meet("read", self.path)
        if position + size > len(inode.data):
            raise ValueError(f"{self.path} has {len(inode.data)} bytes, not {position + size}")
        return memoryview(bytes(inode.data[position : position + size]))

    def truncate(self, size: int) -> None:
        inode = self._check()
        self._disk.meet("truncate", self.path)
        self._disk.give_space(max(0, len(inode.data) - size))
        del inode.data[size:]

    def sync(self) -> None:
        inode = self._check()
        self._disk.check_sync(self.path)
        inode.durable = bytes(inode.data)

    def release(self) -> None:
        """There is nothing to let go of."""

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
    """Files and directories in memory. Directories are the names that end in a slash."""

    def __init__(self, *, space_bytes: int | None = None, now_ms: int = 0) -> None:
        self.space_bytes = space_bytes
        self.fail_writes = False
        self.fail_syncs = False
        self.fail_under = ""  # a path's beginning
        self.errors: list[DiskError] = []
        self.now_ms = now_ms
        self.generation = 0
        self.locks: dict[str, None] = {}
        self._names: dict[str, SimInode] = {}
        self._durable_names: dict[str, SimInode] = {}
        # Changes of names since the last sync of a directory: what a journal would still have to write.
        self._journal: list[dict[str, SimInode]] = []

    # --- faults -------------------------------------------------------------------------------------------------

    def crash(self, random: Random) -> None:
        """Lose power, and come back with what survived."""
        names = random.choice([self._durable_names, *self._journal])
        self._names, self._durable_names, self._journal = dict(names), dict(names), []
        for inode in dict.fromkeys(self._names.values()):
            inode.settle(random)
        self._new_process()

    def kill(self) -> None:
        """The process dies, the machine does not: the page cache stays as it is."""
        self._new_process()

    def _new_process(self) -> None:
        self.generation += 1
        self.locks.clear()

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """The medium forgets one bit."""
        inode = self._inode(path)
        inode.data[position] ^= 1 << bit
        inode.durable = bytes(inode.data)

    def meet(self, operation: Operation, *paths: str) -> None:
        """Raises the OSError that `errors` has for this call."""
        for error in self.errors:
            if any(error.meets(operation, path) for path in paths):
                raise OSError(error.number, os.strerror(error.number), paths[0])

    def take_space(self, size_bytes: int, path: str) -> None:
        if self.fail_writes and path.startswith(self.fail_under):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self.space_bytes is not None:
            if size_bytes > self.space_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.space_bytes -= size_bytes

    def give_space(self, size_bytes: int) -> None:
        if self.space_bytes is not None:
            self.space_bytes += size_bytes

    def check_sync(self, path: str) -> None:
        self.meet("sync", path)
        if self.fail_syncs and path.startswith(self.fail_under):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    # --- the seam -----------------------------------------------------------------------------------------------

    def open(self, path: str) -> SimFile:
        self.meet("open", path)
        inode = self._names.get(path)
        if inode is None:
            inode = self._create(path)
        return SimFile(self, path, inode)

    def exists(self, path: str) -> bool:
        return path in self._names or self.is_directory(path)

    def is_directory(self, path: str) -> bool:
        return path + "/" in self._names

    def names(self, path: str) -> list[str]:
        self.meet("names", path + "/")
        if not self.is_directory(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        head = path + "/"
        known = list(self._names)  # at once: logs are opened in several threads
        names = (name[len(head) :].rstrip("/") for name in known if name.startswith(head) and name != head)
        return sorted(name for name in names if "/" not in name)

    def make_directory(self, path: str) -> None:
        parent = os.path.dirname(path)
        if parent not in ("", "/", path):
            self.make_directory(parent)
        if not self.is_directory(path):
            self.meet("make_directory", path + "/")
            self._create(path + "/")

    def read_file(self, path: str) -> bytes:
        self.meet("read", path)
        return bytes(self._inode(path).data)

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.meet("write", path)
        self.take_space(len(data), path)
        self._require_parent(path)
        inode = SimInode(self.now_ms)
        inode.data += data
        if durable:
            self.check_sync(path)
            inode.durable = bytes(data)
        self._change({path: inode})
        if durable:
            self.sync_directory(os.path.dirname(path))

    def sync_file(self, path: str) -> None:
        SimFile(self, path, self._inode(path)).sync()

    def sync_directory(self, path: str) -> None:
        # One journal for all directories: syncing one writes what came before in the others too, as ext4 does.
        self.check_sync(path + "/")
        if not self.is_directory(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self._durable_names, self._journal = dict(self._names), []

    def rename(self, source: str, target: str) -> None:
        self.meet("rename", source, target)
        if self.is_directory(source):
            head = source + "/"
            moved = {
                target + name[len(source) :]: inode for name, inode in self._names.items() if name.startswith(head)
            }
            self._change(moved, [name for name in self._names if name.startswith(head)])
            return
        self._change({target: self._inode(source)}, [source])

    def remove(self, path: str) -> None:
        self.meet("remove", path)
        self.give_space(len(self._inode(path).data))
        self._change({}, [path])

    def remove_tree(self, path: str) -> None:
        self.meet("remove", path + "/")
        head = path + "/"
        self._change({}, [name for name in self._names if name.startswith(head)])

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
        self.locks[path] = None
        self.open(path)
        return SimLock(self, path)

    # --- names --------------------------------------------------------------------------------------------------

    def _inode(self, path: str) -> SimInode:
        inode = self._names.get(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode

    def _create(self, path: str) -> SimInode:
        self._require_parent(path.rstrip("/"))
        inode = SimInode(self.now_ms)
        self._change({path: inode})
        return inode

    def _require_parent(self, path: str) -> None:
        parent = os.path.dirname(path)
        if parent not in ("", "/") and not self.is_directory(parent):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _change(self, added: dict[str, SimInode], gone: list[str] | None = None) -> None:
        for name in gone or ():
            del self._names[name]
        self._names.update(added)
        self._journal.append(dict(self._names))
