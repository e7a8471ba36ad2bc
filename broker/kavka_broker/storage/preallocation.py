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
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kavka_broker.storage.writeback_throttling import Strain

ROOM_BYTES_MIN: Final = 64 * 1024
"""The smallest append for which room is made: others make a few pages dirty."""
ROOM_BYTES_AHEAD_MAX: Final = 16 * 1024 * 1024
"""As much room is made in advance for the appends that follow: once for many, and not by each."""
PIECE_BYTES: Final = 2 * 1024 * 1024
"""Who waits for room goes on after the piece that holds it."""
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


BringIn = Callable[[int, int, int], None]
MAKES_ROOM: Final = _can_make()
_MAKING: Final = threading.Condition()  # told when a thread has made room, of any file


class Room:
    """The room behind the end of one file, which threads make and the loop takes."""

    __slots__ = ("_end", "_is_over", "_makers", "_ready_end", "_strain", "bring_in", "piece_bytes")

    def __init__(self, strain: Strain) -> None:
        self._strain = strain
        self.bring_in: BringIn = bring_in
        self.piece_bytes = PIECE_BYTES
        self._end = 0  # how far the file may reach on the disk
        self._ready_end = 0  # up to where its pages were made dirty
        self._is_over = not MAKES_ROOM
        self._makers = 0

    @property
    def is_being_made(self) -> bool:
        return self._makers > 0

    def left(self, end: int) -> int:
        """The bytes that an append at this end may take without being held back."""
        return max(0, self._ready_end - end)

    def make(self, fd: int, end: int, size: int) -> None:
        """Have there be room for so many bytes behind the end of the file, where that can be done."""
        target = end + size
        with _MAKING:
            while self._makers and self._ready_end < target:
                _MAKING.wait()  # another thread makes it already, or what is in front of it
            if self._is_over or self._ready_end >= target:
                return
            self._makers += 1
            self._end = max(self._end, target)
            start = max(end, self._ready_end)
        try:
            with suppress(OSError, ValueError):  # the append tells what is wrong, or that nothing is
                for position in range(start, target, self.piece_bytes):
                    self._make_piece(fd, position, min(self.piece_bytes, target - position))
        finally:
            with _MAKING:
                self._makers -= 1
                _MAKING.notify_all()

    def _make_piece(self, fd: int, position: int, size: int) -> None:
        self.bring_in(fd, position, size)
        self._strain.wrote(size)
        with _MAKING:
            self._ready_end = position + size
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

    def is_cut(self, size: int) -> None:
        """Note that no room is left behind this size."""
        self._ready_end = min(self._ready_end, size)

    def is_gone(self) -> None:
        """Note that the file was cut to its end."""
        self._end = self._ready_end = 0
