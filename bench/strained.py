"""Kavka's command, in a process that takes its disk for strained: what the mode costs where nobody is held back.

- `noticed`: every large write counts as one that waited. What the kernel tells of dirty pages then decides.
- `held`: the kernel also seems to hold writers back, all the time, so that room is made for every large batch.
"""

import sys
from typing import Final

from kavka_broker.cli import main
from kavka_broker.storage import strain
from kavka_broker.storage.strain import DirtyPages

HOWS: Final = ("noticed", "held")


def force(how: str) -> None:
    """Have this process see strain so."""
    strain.HELD_SECONDS_MIN = float("-inf")  # type: ignore[misc]
    if how == "held":
        strain.count_dirty_pages = lambda: [DirtyPages(1, 1)]


if __name__ == "__main__":
    force(sys.argv.pop(1))
    main()
