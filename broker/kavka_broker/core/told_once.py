"""What the log tells once: of strangers' names, so many in an hour, and no longer than so."""

from typing import Final

TOLD_MAX: Final = 200
"""In an hour."""
TEXT_MAX: Final = 250
"""Characters of a key that count, which is a topic's name at most."""
FORGET_MS: Final = 3_600_000


class ToldOnce:
    """Keys that have been told within the hour. What is new beyond the bound is not told: nobody can flood a log."""

    def __init__(self, told_max: int = TOLD_MAX) -> None:
        self._told_max = told_max
        self._told: set[tuple[str, ...]] = set()
        self._since_ms = 0.0

    def is_new(self, now_ms: float, *key: str) -> bool:
        """Whether to tell this now; it counts as told from then on."""
        if now_ms - self._since_ms >= FORGET_MS:
            self._told.clear()
            self._since_ms = now_ms
        short = tuple(part[:TEXT_MAX] for part in key)
        if short in self._told or len(self._told) >= self._told_max:
            return False
        self._told.add(short)
        return True
