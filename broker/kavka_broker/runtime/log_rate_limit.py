"""Warnings that would come again and again."""

import time
from collections.abc import Callable


class Quiet:
    """Lets the same warning through once in a while."""

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._until_s = -interval_s
        self._hushed = 0

    def hushed(self) -> int | None:
        """Return how many warnings were kept back since the last one, if the next may be logged now."""
        if self._clock() < self._until_s:
            self._hushed += 1
            return None
        self._until_s = self._clock() + self._interval_s
        hushed, self._hushed = self._hushed, 0
        return hushed
