"""How long acknowledgements take, calm and beside a node that is slow: what one slow node costs the others.

Each partition is measured by a producer of its own. Answers on one connection keep the order of its requests, so a
producer that also writes to a partition with a replica on the slow node waits for that one first, whatever the broker
does; a producer of its own waits for its own partition only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.sim.history import Place

KEPT_MAX: Final = 20_000  # of a partition between two resets
POOLED_MAX: Final = 1_000_000


@dataclass(slots=True)
class Latencies:
    """How long acknowledgements took, by partition, since the last `reset`: the first `KEPT_MAX` of each."""

    seconds: dict[Place, list[float]] = field(default_factory=dict)

    def acknowledged(self, place: Place, seconds: float) -> None:
        found = self.seconds.setdefault(place, [])
        if len(found) < KEPT_MAX:
            found.append(seconds)

    def reset(self) -> None:
        self.seconds.clear()

    def of(self, places: Sequence[Place]) -> list[float]:
        """Of all these partitions together, in seconds."""
        return [one for place in places for one in self.seconds.get(place, ())]


@dataclass(slots=True)
class Others:
    """The latencies of a whole run: of partitions without a replica on the slow node, and of all in calm times."""

    beside: list[float] = field(default_factory=list)
    calm: list[float] = field(default_factory=list)

    def were_calm(self, seconds: Sequence[float]) -> None:
        self.calm += seconds[: POOLED_MAX - len(self.calm)]

    def were_beside(self, seconds: Sequence[float]) -> None:
        self.beside += seconds[: POOLED_MAX - len(self.beside)]

    def text(self) -> str:
        """One line for the report; nothing where no node was slow."""
        if not (self.beside and self.calm):
            return ""
        beside, calm = p99_ms(self.beside), p99_ms(self.calm)
        return f"p99 beside a slow node {beside:.0f} ms, calm {calm:.0f} ms: {beside / calm:.2f} times"


def p99_ms(seconds: Sequence[float]) -> float:
    """Of at least one latency, in milliseconds."""
    return 1000 * sorted(seconds)[len(seconds) * 99 // 100]
