"""What the log tells once: of strangers' names, so many in an hour, and no longer than so."""

from typing import Final

TOLD_MAX: Final = 200
"""Of one event, in an hour."""
TEXT_MAX: Final = 250
"""Characters of a key that count, which is a topic's name at most."""
FORGET_MS: Final = 3_600_000


class ToldOnce:
    """Keys that have been told within the hour. What is new beyond the bound is not told: nobody can flood a log."""

    def __init__(self, told_max: int = TOLD_MAX) -> None:
        self._told_max = told_max
        self._told: dict[str, set[tuple[str, ...]]] = {}  # by event
        self._since_ms = 0.0

    def is_new(self, now_ms: float, event: str, *key: str) -> bool:
        """Whether to tell this now; it counts as told from then on."""
        if now_ms - self._since_ms >= FORGET_MS:
            self._told.clear()
            self._since_ms = now_ms
        short, told = tuple(map(shortened, key)), self._told.setdefault(event, set())
        if short in told or len(told) >= self._told_max:
            return False
        told.add(short)
        return True


def shortened(name: str) -> str:
    """Return as much of a stranger's name as a log tells."""
    return name[:TEXT_MAX]
