"""Room behind the end of a file: pages that are in memory, and dirty, before anything is written to them.

Whoever makes a clean page dirty is held back by the kernel while more of them are dirty than it wants, in the middle of
a write. A write to pages that are dirty already is not. So a thread makes them so before the loop writes a large batch
(docs/adr/0025-large-writes-in-two-steps.md): it has the file reach over them and asks the kernel to map them in for
writing (`MADV_POPULATE_WRITE`, Linux 5.14). What a page holds stays as it is, so the loop may write to
the same pages meanwhile.

Not `posix_fallocate`, which writes zeros itself where a file system cannot reserve, nor Python's `madvise`, which would
let no other thread run.
"""

import ctypes
import mmap
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

ROOM_BYTES_MIN: Final = 64 * 1024
"""The smallest append for which room is made: others make a few pages dirty."""
HELD_SECONDS_MIN: Final = 0.005
"""The kernel holds a writer back for 10 ms and more at a time, and a copy of a megabyte takes a fraction of one."""
STRAINED_SECONDS: Final = 10.0
_MADV_POPULATE_WRITE: Final = 23
_c: Final = ctypes.CDLL(None, use_errno=True)


def bring_in(fd: int, position: int, size: int) -> None:
    """Have the file reach to `position + size` at least, and its pages there be dirty. For threads. Raises OSError, and
    ValueError where the file has been cut meanwhile; then it may be longer than before.
    """
    assert position >= 0
    assert size > 0
    _check(_c.fallocate(fd, 0, ctypes.c_int64(position), ctypes.c_int64(size)))
    start = position & -mmap.PAGESIZE
    with mmap.mmap(
        fd, position + size - start, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=start
    ) as map_:
        _populate(map_)


def _populate(pages: mmap.mmap) -> None:
    first = ctypes.c_char.from_buffer(pages)
    try:
        address = ctypes.c_void_p(ctypes.addressof(first))
        _check(_c.madvise(address, ctypes.c_size_t(len(pages)), _MADV_POPULATE_WRITE))
    finally:
        del first  # or the map could not be closed


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _can_make() -> bool:
    """Whether this kernel dirties pages by request."""
    if not hasattr(_c, "fallocate"):
        return False
    try:
        with mmap.mmap(-1, mmap.PAGESIZE) as probe:
            _populate(probe)
    except OSError:
        return False
    return True


MAKES_ROOM: Final = _can_make()
_MAKING: Final = threading.Condition()  # told when a thread has made room, of any file


class Strain:
    """Whether the kernel holds back who makes pages of a disk dirty: so it is for a while after it has done so.

    While it does not, a thread's work for a large append would cost more than the append.
    """

    __slots__ = ("_until", "clock")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._until = 0.0

    @property
    def is_felt(self) -> bool:
        return MAKES_ROOM and self.clock() < self._until

    def note(self, began: float) -> None:
        """Take in that a large write has ended just now, or room for one was made."""
        now = self.clock()
        if now - began >= HELD_SECONDS_MIN:
            self._until = now + STRAINED_SECONDS


class Room:
    """The room behind the end of one file, which threads make and the loop takes."""

    __slots__ = ("_end", "_is_over", "_makers", "_strain")

    def __init__(self, strain: Strain) -> None:
        self._strain = strain
        self._end = 0  # how far the file may reach on the disk
        self._is_over = not MAKES_ROOM
        self._makers = 0

    @property
    def is_being_made(self) -> bool:
        return self._makers > 0

    def make(self, fd: int, end: int, size: int) -> None:
        """Make room for so many bytes behind the end of the file, where that can be done."""
        with _MAKING:
            if self._is_over:
                return
            self._makers += 1
            self._end = max(self._end, end + size)
        began = self._strain.clock()
        try:
            with suppress(OSError, ValueError):  # the append tells what is wrong, or that nothing is
                bring_in(fd, end, size)
        finally:
            self._strain.note(began)
            with _MAKING:
                self._makers -= 1
                _MAKING.notify_all()

    def end(self) -> None:
        """Make none any more. Waits for threads that do."""
        with _MAKING:
            self._is_over = True
            while self._makers:
                _MAKING.wait()

    def reaches_over(self, size: int) -> bool:
        """Whether the file may be longer on the disk than so."""
        return self._end > size

    def is_gone(self) -> None:
        """Note that the file was cut."""
        self._end = 0
