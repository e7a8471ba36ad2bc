"""What the times of signed heads tell of the chains of a partition, whatever the order of its records is.

A client that may write the topic can put records in another order, but not give a signed entry another time. Nodes'
clocks differ, though. How far one is ahead of another, its heads show: each of them is later, by more than that, than
the head of the other that stands before it. The least of these differences counts, so that heads which were moved, or
a node that was away, change nothing; and of a chain all of which was moved, no more than `SKEW_MAX_MS` counts.
"""

from dataclasses import dataclass, field
from typing import Final

from kavka_broker.core.audit.chain import HEAD_MS

APART_MS: Final = 30_000
"""By how much clocks that keep time differ, and entries of the same moment with them."""
LONG_MS: Final = 3 * HEAD_MS
"""By how much the last heads of two chains differ at most where both go on and their clocks agree: two intervals, and
one for clocks that are set and batches that are sent again.
"""
BEGIN_MS: Final = HEAD_MS + APART_MS
"""By how much the first entries of two chains that retention has cut differ at most: a chain may have been quiet for an
interval.
"""
SKEW_MAX_MS: Final = 5 * HEAD_MS
"""How far a clock may be ahead of another."""
NODES_MAX: Final = 32
"""Nodes of a partition whose clocks are compared."""


@dataclass(slots=True)
class Clock:
    """How far the clock of a chain's node and those of other nodes are ahead of each other at most, in ms, by node."""

    ahead: dict[str, int] = field(default_factory=dict)  # of the other
    behind: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Clocks:
    """The nodes of a partition that have a good head."""

    _newest: dict[str, tuple[int, Clock]] = field(default_factory=dict)  # the head, in ms, and the clock of its chain
    _firsts: dict[str, int] = field(default_factory=dict)  # the first entry, in ms

    def take_head(self, node: str, head_ms: int, clock: Clock) -> None:
        """Take a good head of a chain."""
        for other, (other_ms, other_clock) in self._newest.items():
            if other != node:
                ahead = head_ms - other_ms
                clock.ahead[other] = min(clock.ahead.get(other, ahead), ahead)
                other_clock.behind[node] = min(other_clock.behind.get(node, ahead), ahead)
        if node in self._newest or len(self._newest) < NODES_MAX:
            self._newest[node] = head_ms, clock

    def take_first(self, node: str, first_ms: int) -> None:
        """Take when the first entry of a chain without damage was written."""
        if node in self._newest:
            self._firsts[node] = min(first_ms, self._firsts.get(node, first_ms))

    def are_long_after(self, head_ms: int, clock: Clock) -> bool:
        """Whether a node has a head so long after this last one of a chain that none of that is under way."""
        return any(
            newest_ms - head_ms > LONG_MS + _within(clock.behind.get(node, SKEW_MAX_MS))
            for node, (newest_ms, _) in self._newest.items()
        )

    def began_before(self, first_ms: int, clock: Clock) -> bool:
        """Whether a node has an entry so long before this first one of a chain that retention has not cut that."""
        return any(first_ms - other_ms > BEGIN_MS + _lead(node, clock) for node, other_ms in self._firsts.items())


def _lead(node: str, clock: Clock) -> int:
    """Return how far a chain's clock is ahead of a node's at most, in ms; 0 where both may keep time."""
    is_ahead = clock.behind.get(node, -SKEW_MAX_MS) < -APART_MS
    return _within(clock.ahead.get(node, SKEW_MAX_MS)) if is_ahead else 0


def _within(skew_ms: int) -> int:
    return min(max(skew_ms, 0), SKEW_MAX_MS)
