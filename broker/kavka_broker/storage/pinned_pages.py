"""Keeps a part of a memory map readable while its file is cut.

A page of a map that lies behind the end of its file ends the process that touches it (SIGBUS). Whoever holds a slice of
the map does not know that the file is about to shrink. So the pages from the cut on are read into memory of their own,
and this memory takes the place of the pages, at the same addresses and in one step (mremap(2)): the holder goes on and
notices nothing. It costs as much memory as is cut off, until the last slice is gone and the map with it; and no room on
the disk, which may be full.
"""

import ctypes
import mmap
import os
from typing import Final

_MREMAP_MAYMOVE: Final = 1
_MREMAP_FIXED: Final = 2
_FAILED: Final = ctypes.c_void_p(-1).value
_PIECE_BYTES: Final = 1024 * 1024


class _Buffer(ctypes.Structure):
    """Python's `Py_buffer`."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


def keep_behind(mapped: mmap.mmap, fd: int, size: int, end: int) -> int:
    """Take what `mapped` shows of the file between `size` and `end` into memory; returns up to where it shows the file
    now. What is behind `end` is in memory since an earlier cut. Raises OSError; then nothing has changed.

    The page that holds the cut goes too, for the kernel clears the rest of it.
    """
    assert size >= 0
    start = size - size % mmap.PAGESIZE
    assert start % mmap.PAGESIZE == 0
    length = end - start
    if length <= 0:
        return end
    libc = _libc()
    kept = libc.mmap(None, length, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if kept == _FAILED:
        raise _error()
    try:
        _copy(fd, start, length, kept)
        moved = libc.mremap(kept, length, length, _MREMAP_MAYMOVE | _MREMAP_FIXED, _address(mapped) + start)
        if moved == _FAILED:
            raise _error()
    except OSError:
        libc.munmap(kept, length)
        raise
    return start


def _copy(fd: int, start: int, length: int, target: int) -> None:
    # The file is read, since a sector that cannot be read is an error there, and a SIGBUS in the map.
    done = 0
    while done < length:
        piece = os.pread(fd, min(_PIECE_BYTES, length - done), start + done)
        if not piece:
            return  # the file is shorter than the map was: what is behind it is zeros
        ctypes.memmove(target + done, piece, len(piece))
        done += len(piece)
    assert done == length


def _address(mapped: mmap.mmap) -> int:
    view = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(mapped), ctypes.byref(view), 0)
    address = view.buf
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    assert address is not None
    return int(address)


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype, libc.mmap.argtypes = address, (address, size, number, number, number, ctypes.c_long)
    libc.mremap.restype, libc.mremap.argtypes = address, (address, size, size, number, address)
    libc.munmap.restype, libc.munmap.argtypes = number, (address, size)
    return libc


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
