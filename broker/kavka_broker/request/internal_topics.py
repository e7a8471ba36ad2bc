"""Internal topics that streams groups wait for: which are being created, and which could not be, on this node.

A member's heartbeat asks for them again and again. Each topic is asked for once at a time, and again only some time
after it could not be made: the members hear the reason until then.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

__all__ = ["InternalTopics"]

UNDER_WAY_MAX: Final = 10_000
"""Topics that are being created at once; the others are asked for by a later heartbeat."""
FAILED_MAX: Final = 1_000
"""Reasons that are kept, as many as Apache Kafka keeps; the oldest is forgotten."""
REASON_LENGTH_MAX: Final = 500


@dataclass(slots=True)
class InternalTopics:
    """The creations of one node."""

    _under_way: dict[str, None] = field(default_factory=dict)
    _failed: dict[str, tuple[float, str]] = field(default_factory=dict)  # until when each counts, and why

    def begin(self, names: Iterable[str], now_ms: float) -> list[str]:
        """Return those of these topics that are to be created now; they are under way from now on."""
        begun = list[str]()
        for name in names:
            if len(self._under_way) >= UNDER_WAY_MAX:
                break
            if name not in self._under_way and self.failure(name, now_ms) is None:
                self._under_way[name] = None
                begun.append(name)
        return begun

    def end(self, name: str) -> None:
        self._under_way.pop(name, None)

    def fail(self, name: str, reason: str, until_ms: float) -> None:
        """Note why a topic could not be created, and until when it is not asked for again."""
        self._failed.pop(name, None)
        self._failed[name] = until_ms, reason[:REASON_LENGTH_MAX]
        while len(self._failed) > FAILED_MAX:
            del self._failed[next(iter(self._failed))]

    def failure(self, name: str, now_ms: float) -> str | None:
        """Return the reason that a topic could not be created a moment ago; None where that is not so."""
        failed = self._failed.get(name)
        if failed is None:
            return None
        until_ms, reason = failed
        if now_ms < until_ms:
            return reason
        del self._failed[name]
        return None
