"""Where logs live: a small seam, so that a test can pull the plug.

`RealDisk` is the operating system. A test's keeps bytes in memory, forgets what was not synced when it crashes,
tears writes, runs full and fails.

What a user of the seam may rely on:

- An append is all or nothing as long as the process lives: after an error the file is as long as before. A crash may
  leave any part of what was not synced, which is what recovery is for.
- A view that `read` returned stays readable for as long as it is held, whatever happens to the file.
- `write_file` replaces a small file as a whole: readers see the old bytes or the new ones. With `durable` that holds
  across a loss of power too: temporary file, fsync, rename, fsync of the directory.

**Room.** A thread may have the pages behind the end made ready for a large append (`make_room`). Until the append
comes, or the file is let go of, there are zeros behind the end on the disk, which a process that dies leaves behind.

**Reading through a map.** A read is a slice of the file's memory map, which the socket takes without a copy. Two
dangers come with that. The map is as long as the file was when it was made, so a read beyond it maps it again (the
old map lives until its last slice is gone); small reads at the growing end are plain `pread`s, which are cheaper than a
map each. And touching a page of a map kills the process (SIGBUS) where it lies beyond the end of its file or its sector
cannot be read. A file only shrinks by `truncate`, always in place, for a full disk has no room for a copy: where no
slice is alive the map is closed first; where one is, what is cut off stays in memory behind the slice (`pinned_pages`).
Removing a file does not disturb its maps. For the sector, the kernel is asked to bring in the pages of a slice before
it is handed out (`MADV_POPULATE_READ`, Linux 5.14: a third of a microsecond where they are there), which is an error
and no signal where it cannot. Where the kernel does not know that, nothing is mapped.
"""

import errno
import mmap
import os
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, Protocol

from kavka_broker.storage.disk_errors import NotAFile
from kavka_broker.storage.file_modes import DIRECTORY_MODE, FILE_MODE, opener
from kavka_broker.storage.lock_file import Lock, LockFile
from kavka_broker.storage.mmap_reads import MAPS, bring_in
from kavka_broker.storage.pinned_pages import keep_behind
from kavka_broker.storage.preallocation import ROOM_BYTES_MIN, Room
from kavka_broker.storage.writeback_throttling import Strain

Buffer = bytes | bytearray | memoryview

# Below this a read of bytes that are not mapped yet costs less as a copy than as a map.
PREAD_BYTES_MAX: Final = 64 * 1024
READ_BYTES: Final = 64 * 1024  # at a time of a small file
# Ends of names of files that are not finished, or not wanted any more: a start removes them.
UNFINISHED_SUFFIXES: Final = (".tmp", ".cleaned", ".deleted")
_EMPTY: Final = memoryview(b"")


class File(Protocol):
    """A file that grows at its end."""

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int:
        """The bytes in the file."""
        ...

    def append(self, piece: Buffer) -> None:
        """Write all of `piece` at the end. Raises OSError, and then leaves the file as it was."""
        ...

    @property
    def room_bytes(self) -> int:
        """What may be appended without waiting for the disk."""
        ...

    def make_room(self, size: int) -> None:
        """Have an append of so many bytes not wait for the disk, where that can be done; in a thread."""
        ...

    def end_room(self) -> None:
        """Give back what is left of room, and make none any more. Waits for threads that do. Raises OSError."""
        ...

    def read(self, position: int, size: int) -> memoryview:
        """Return exactly these bytes, which must have been written; readable for as long as they are held."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to `size`; views of the cut bytes stay readable."""
        ...

    def sync(self) -> None:
        """Make everything that was appended survive a loss of power. May run beside appends, in a thread."""
        ...

    def release(self) -> None:
        """Close maps and descriptors; the next use opens them again."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    """Files and directories by path. All methods raise OSError as the operating system would."""

    @property
    def is_strained(self) -> bool:
        """Whether large appends are to wait, so that the kernel holds nobody back."""
        ...

    @property
    def strain_lasts(self) -> bool:
        """Whether strain has gone on for so long that waiting does not end it: then a thread is to make room."""
        ...

    def open(self, path: str) -> File:
        """Open `path` for appending and reading; the file is made where it does not exist."""
        ...

    def open_to_read(self, path: str, size_max: int | None = None) -> File:
        """Return a handle of its own on an existing file, for a thread: it takes no map, and goes on reading the file
        that it was opened on under whatever name. Of a file that others write, `size_max` bytes are in it.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def link_target(self, path: str) -> str | None:
        """Return where a symbolic link leads; None where the path is none."""

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        ...

    def make_directory(self, path: str) -> None:
        """Make the directory and its parents; an existing one is fine."""
        ...

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None: ...

    def sync_file(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def space(self, path: str) -> tuple[int, int]:
        """Return the bytes of the volume of `path`, and how many are left; -1 where that is not known."""
        ...

    def lock(self, path: str) -> Lock:
        """Take the lock file. Raises BlockingIOError where another process holds it."""
        ...


# Held for a moment by a thread that begins or ends to use a descriptor, and by the loop while it closes a file.
_LENDING: Final = threading.Lock()
# Bytes and length, which is all that a file is read by; its times may be older after a loss of power.
_sync_data: Final = getattr(os, "fdatasync", os.fsync)


class RealFile:
    """A file of the operating system. The descriptor is opened at first use, so that idle logs hold none."""

    __slots__ = (
        "_borrowers",
        "_closed",
        "_earlier",
        "_fd",
        "_kept_fds",
        "_map",
        "_strain",
        "_view",
        "path",
        "room",
        "size",
    )

    def __init__(self, path: str, fd: int = -1, strain: Strain | None = None) -> None:
        self.path = path
        self._strain = Strain() if strain is None else strain
        self._fd = fd
        self._borrowers = 0  # threads that use the descriptor just now
        self.room = Room(self._strain)
        self._kept_fds: tuple[int, ...] = ()  # to be closed after use: reused they would sync another file
        self._closed = False
        self._map: mmap.mmap | None = None
        # Maps that were let go and may have slices that are held, and up to where each still shows the file.
        self._earlier: list[tuple[weakref.ref[mmap.mmap], int]] = []
        self._view = _EMPTY
        try:
            self.size = _size_of(os.lstat(path) if fd < 0 else os.fstat(fd), path)
        except FileNotFoundError:
            self.size = 0
            self._descriptor()

    def _descriptor(self) -> int:
        if self._fd < 0:
            if self._closed:
                raise ValueError(f"{self.path} is closed")
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        return self._fd

    def append(self, piece: Buffer) -> None:
        size = len(piece)
        if size >= ROOM_BYTES_MIN and self.room.left(self.size) < size:
            self._strain.wrote(size)
        fd = self._fd
        if fd < 0:
            fd = self._descriptor()
        try:
            written = os.pwrite(fd, piece, self.size)
            if written != size:
                # A nearly full disk takes a part; the next write raises the error.
                self._append_rest(fd, memoryview(piece), written)
        except OSError:
            self._cut_torn_append(fd)
            raise
        self.size += size

    def _append_rest(self, fd: int, piece: memoryview, written: int) -> None:
        assert 0 <= written < len(piece), f"{self.path}: {written} of {len(piece)} bytes are written"
        while written < len(piece):
            written += os.pwrite(fd, piece[written:], self.size + written)

    def _cut_torn_append(self, fd: int) -> None:
        # Where even this fails the next append overwrites the torn one, and recovery would cut it off.
        try:
            os.ftruncate(fd, self.size)
        except OSError:
            return

    @property
    def room_bytes(self) -> int:
        return self.room.left(self.size)

    def make_room(self, size: int) -> None:
        with self._borrowed() as fd:
            if fd >= 0:
                self.room.make(fd, self.size, size)

    def end_room(self) -> None:
        self.room.end()
        self._give_back()

    def _give_back(self) -> None:
        """Cut off the room that nothing was written to. Raises OSError."""
        if self.room.reaches_over(self.size):
            os.ftruncate(self._descriptor(), self.size)
            self.room.is_gone()

    def read(self, position: int, size: int) -> memoryview:
        """Return bytes that were written. Raises ValueError beyond the end."""
        end = position + size
        if end > len(self._view):
            if end > self.size:
                raise ValueError(f"{self.path} has {self.size} bytes, not {end}")
            if size <= PREAD_BYTES_MAX or not MAPS:
                return self._copy(position, size)
            self._map_anew()
        self._bring_in(position, end)
        return self._view[position:end]

    def _copy(self, position: int, size: int) -> memoryview:
        data = os.pread(self._descriptor(), size, position)
        if len(data) != size:
            raise self._unreadable(f"{len(data)} of {size} bytes at {position}")
        return memoryview(data)

    def _map_anew(self) -> None:
        self._let_go()
        try:
            self._map = mmap.mmap(self._descriptor(), self.size, mmap.MAP_SHARED, mmap.PROT_READ)
        except ValueError as problem:
            raise self._unreadable(str(problem)) from problem
        self._view = memoryview(self._map)
        assert len(self._view) == self.size

    def _bring_in(self, position: int, end: int) -> None:
        """Bring pages in. Raises OSError where a page cannot be read, which would be a SIGBUS for its reader."""
        if self._map is None or position == end:
            return
        start = position & -mmap.PAGESIZE
        try:
            bring_in(self._map, start, end - start)
        except OSError as problem:
            raise self._unreadable(f"{end - position} bytes at {position}: {problem.strerror}") from problem

    def _unreadable(self, what: str) -> OSError:
        """Return the error of a page: the system says EFAULT or EHWPOISON of a map, and reads less of a cut file."""
        return OSError(errno.EIO, f"{os.strerror(errno.EIO)}: {what}", self.path)

    def truncate(self, size: int) -> None:
        assert size >= 0, f"{self.path} is cut to {size} bytes"
        if size >= self.size:
            return
        self._let_go()
        for index, (earlier, end) in enumerate(self._earlier):
            if (held := earlier()) is not None:
                self._earlier[index] = earlier, keep_behind(held, self._descriptor(), size, end)
        assert self._map is None, f"{self.path}: a map reaches over the cut at {size}"
        os.ftruncate(self._descriptor(), size)
        self.room.is_cut(size)
        self.size = size

    def _let_go(self) -> None:
        held, self._map, self._view = self._map, None, _EMPTY
        if held is not None:
            self._earlier.append((weakref.ref(held), len(held)))
        # The map lives exactly as long as a slice of it does.
        del held
        if self._earlier:
            self._earlier = [earlier for earlier in self._earlier if earlier[0]() is not None]

    def sync(self) -> None:
        with self._borrowed() as fd:
            if fd >= 0:
                _sync_data(fd)
                return
        self._sync_released()

    @contextmanager
    def _borrowed(self) -> Iterator[int]:
        """The descriptor, which stays open meanwhile; -1 where the file has none."""
        with _LENDING:
            fd = self._fd
            self._borrowers += fd >= 0
        try:
            yield fd
        finally:
            if fd >= 0:
                with _LENDING:
                    self._borrowers -= 1
                    assert self._borrowers >= 0
                    self._close_kept()

    def _sync_released(self) -> None:
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            if self._closed:
                return
            raise
        try:
            _sync_data(fd)
        finally:
            os.close(fd)

    def _close_kept(self) -> None:
        """Close descriptors that the loop has let go of, in the last thread that borrowed one."""
        if not self._borrowers:
            kept, self._kept_fds = self._kept_fds, ()
            for fd in kept:
                os.close(fd)

    def release(self) -> None:
        if self.room.is_being_made:
            return  # it is used
        with suppress(OSError):  # the next to let go of it tries again
            self._give_back()
        self._close()

    def close(self) -> None:
        self._closed = True
        self._close()

    def _close(self) -> None:
        self._let_go()
        if self._fd >= 0:
            with _LENDING:
                fd, self._fd = self._fd, -1
                self._kept_fds = (*self._kept_fds, fd)
                self._close_kept()


def _size_of(found: os.stat_result, path: str) -> int:
    """Return the size of a file. Raises NotAFile for a link and the like."""
    if not stat.S_ISREG(found.st_mode):
        raise NotAFile(path)
    return found.st_size


def _open_to_read(path: str) -> int:
    """Return a descriptor of a file. Raises NotAFile for a link, which is not followed, and for what is no file, which
    is not waited for.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as problem:
        if problem.errno == errno.ENXIO or (problem.errno == errno.ELOOP and os.path.islink(path)):  # a socket, a link
            raise NotAFile(path) from None
        raise
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise NotAFile(path)
    except BaseException:
        os.close(fd)
        raise
    return fd


class RealReader(RealFile):
    """A file that is only read: each read is a copy, for which the other threads do not have to wait."""

    __slots__ = ()

    def __init__(self, path: str, size_max: int | None = None) -> None:
        super().__init__(path, _open_to_read(path))
        self.size = self.size if size_max is None else min(self.size, size_max)

    def read(self, position: int, size: int) -> memoryview:
        return self._copy(position, size)


class RealDisk:
    """Files of the operating system."""

    def __init__(self) -> None:
        self._strain = Strain()

    @property
    def is_strained(self) -> bool:
        return self._strain.is_felt

    @property
    def strain_lasts(self) -> bool:
        return self._strain.lasts

    def open(self, path: str) -> RealFile:
        return RealFile(path, strain=self._strain)

    def open_to_read(self, path: str, size_max: int | None = None) -> RealReader:
        return RealReader(path, size_max)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def link_target(self, path: str) -> str | None:
        return os.readlink(path) if os.path.islink(path) else None

    def names(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        try:
            os.mkdir(
                path, DIRECTORY_MODE
            )  # mostly only this one is missing, and each further call may wait for the disk
        except FileNotFoundError:
            os.makedirs(path, DIRECTORY_MODE, exist_ok=True)
        except FileExistsError:
            if not os.path.isdir(path):
                raise

    def read_file(self, path: str) -> bytes:
        # Not `open`: these are small, and a start reads very many of them.
        fd = _open_to_read(path)
        try:
            pieces = [*iter(partial(os.read, fd, READ_BYTES), b"")]
        finally:
            os.close(fd)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        assert not path.endswith(UNFINISHED_SUFFIXES), f"a start would remove {path}"
        # The loop and a flushing thread may both write a log's epochs: each has a temporary file of its own.
        unfinished = f"{path}.{threading.get_ident()}.tmp"
        with open(unfinished, "wb", opener=opener) as file:
            file.write(data)
            file.flush()  # a nearly full disk takes a part: this goes on with the rest, or raises its error
            if durable:
                os.fsync(file.fileno())
        os.replace(unfinished, path)
        if durable:
            self.sync_directory(os.path.dirname(path))

    def sync_file(self, path: str) -> None:
        self._sync(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)

    def sync_directory(self, path: str) -> None:
        self._sync(path, os.O_RDONLY | os.O_DIRECTORY)

    def _sync(self, path: str, flags: int) -> None:
        fd = os.open(path, flags | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def space(self, path: str) -> tuple[int, int]:
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def lock(self, path: str) -> LockFile:
        return LockFile(path)
