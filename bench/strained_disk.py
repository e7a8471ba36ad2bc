"""Kavka's command, in a process that takes its disk for strained: what the mode costs where nobody is held back.

- `filled`: the kernel seems to let `ALLOWED_BYTES` wait to be written, on a disk that writes `DISK_BYTES_PER_SECOND`:
  the broker fills the disk itself, and its large batches wait.
- `held`: so much seems to wait all the time, as where others fill the disk, so that room is made for every large batch.
"""

import sys
import time
from typing import Final

from kavka_broker.cli import main
from kavka_broker.storage import writeback_throttling
from kavka_broker.storage.writeback_throttling import DirtyPages

HOWS: Final = ("filled", "held")
ALLOWED_BYTES: Final = 256 * 1024 * 1024
DISK_BYTES_PER_SECOND: Final = 300_000_000


class Filled:
    """A disk that writes at one rate what this process has made dirty."""

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._seen_bytes = written_bytes()
        self._dirty_bytes = 0.0

    def count(self) -> list[DirtyPages]:
        """What waits to be written now."""
        now, seen_bytes = time.monotonic(), written_bytes()
        more_bytes = seen_bytes - self._seen_bytes
        self._dirty_bytes = max(0.0, self._dirty_bytes + more_bytes - (now - self._at) * DISK_BYTES_PER_SECOND)
        self._at, self._seen_bytes = now, seen_bytes
        return [DirtyPages(int(self._dirty_bytes), ALLOWED_BYTES)]


def written_bytes() -> int:
    """The bytes of pages that this process has made dirty since it began."""
    with open("/proc/self/io", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("write_bytes:"))


def force(how: str) -> None:
    """Have this process see strain so."""
    writeback_throttling.count_dirty_pages = Filled().count if how == "filled" else lambda: [DirtyPages(1, 1)]


if __name__ == "__main__":
    force(sys.argv.pop(1))
    main()
