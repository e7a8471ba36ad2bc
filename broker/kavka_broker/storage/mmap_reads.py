"""Pages of a memory map, brought in by request: an error where one cannot be read, and no signal at its reader."""

import mmap
from typing import Final

_MADV_POPULATE_READ: Final = 22  # Python has no name for it


def bring_in(pages: mmap.mmap, start: int, size: int) -> None:
    """Have these pages be in memory. Raises OSError."""
    pages.madvise(_MADV_POPULATE_READ, start, size)


def _can_populate() -> bool:
    """Whether this kernel maps pages in by request."""
    try:
        with mmap.mmap(-1, mmap.PAGESIZE) as probe:
            bring_in(probe, 0, mmap.PAGESIZE)
    except OSError:
        return False
    return True


MAPS: Final = _can_populate()
