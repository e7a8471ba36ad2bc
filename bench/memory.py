"""Memory that the machine really has, on a virtual machine that gives back what it does not use.

A guest with free page reporting returns its free memory to the host within seconds, in blocks of 2 MiB. The next touch
then costs a fault in the host: writing 1 MiB to the page cache took 2.3 ms instead of 0.2 ms on the machine where this
was found, and it is charged to whoever writes. Logs are written to fresh pages all the time, so the CPU per GB of
either broker was 0.4 s or 2.4 s, by chance. On real hardware there is no such thing.

`Pool` makes free memory that is not given back: it takes a stretch, touches all of it, and frees it again but for one
page in each block. What is left are blocks a page short of the size that is reported, and the kernel's allocator takes
small blocks first. The pool costs one page in 512 as long as it is held.
"""

import mmap
import os
from typing import Final, Self

BLOCK_BYTES: Final = 2 * 1024 * 1024
# Linux' number; the module has it from Python 3.8 on where the C library knows it.
NO_HUGE_PAGES: Final = getattr(mmap, "MADV_NOHUGEPAGE", 15)


class Pool:
    """Free memory of a size that stays with this machine while the pool is held."""

    def __init__(self, size_bytes: int) -> None:
        self._map = mmap.mmap(-1, max(BLOCK_BYTES, size_bytes), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._map.madvise(NO_HUGE_PAGES)
        self._touch()
        self._free_all_but_a_page_of_each_block()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._map.close()

    def _touch(self) -> None:
        for position in range(0, len(self._map), mmap.PAGESIZE):
            self._map[position] = 1

    def _free_all_but_a_page_of_each_block(self) -> None:
        for position in range(0, len(self._map) - BLOCK_BYTES + 1, BLOCK_BYTES):
            self._map.madvise(mmap.MADV_DONTNEED, position + mmap.PAGESIZE, BLOCK_BYTES - mmap.PAGESIZE)


def pool_bytes() -> int:
    """A quarter of the machine: room for the segments of a few measures, and little enough to leave the rest alone."""
    return os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE // 4
