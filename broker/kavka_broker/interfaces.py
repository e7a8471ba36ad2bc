"""What the broker takes from the world, as small interfaces.

Nothing below `runtime` reads a clock by itself: time is handed in, so that a test, a replay and the simulator
decide what time it is. `Disk` lives with the storage that uses it (`storage/disk.py`).
"""

from typing import Protocol


class Clock(Protocol):
    """Wall time for records and logs, monotonic time for waiting."""

    def now_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        ...

    def monotonic_ms(self) -> float:
        """Return milliseconds from an arbitrary start; never goes back."""
        ...
