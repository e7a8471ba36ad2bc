"""When the first target of a group is computed whose members join together.

Consumers that are started together join within milliseconds, many of them within seconds. If the first were assigned
everything at once, it would have to give nearly all of it up again. So the first target of a group to which several
members come at a time waits until none has joined for half of `rebalance_interval_ms`, and no longer than three times
`assignment_interval_ms`. A member that comes alone does not wait (docs/adr/0040).
"""

from dataclasses import dataclass, replace
from typing import Final, Self

from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings

__all__ = ["ARRIVAL_MS", "Gathering", "gathers"]

ARRIVAL_MS: Final = 20
"""For how long the first heartbeat of a group without members is held: whether another comes meanwhile."""

INTERVALS_MAX: Final = 3
"""Between two assignments, that members may gather for. With the default it is as long as
`group.initial.rebalance.delay.ms` of the classic protocol.
"""


@dataclass(frozen=True, slots=True)
class Gathering:
    """The time in which members of a group without a target join, by the coordinator's clock."""

    since_ms: int
    joined_at_ms: int  # when the last member did

    def is_over(self, settings: ConsumerGroupSettings, now_ms: int) -> bool:
        """Whether the target may be computed. A clock that was set back ends it."""
        ends_ms = min(
            self.joined_at_ms + settings.rebalance_interval_ms // 2,
            self.since_ms + INTERVALS_MAX * settings.assignment_interval_ms,
        )
        return not self.joined_at_ms <= now_ms < ends_ms

    def joined(self, now_ms: int) -> Self:
        return replace(self, joined_at_ms=now_ms)


def gathers(settings: ConsumerGroupSettings) -> bool:
    """Whether members of groups with these settings gather: not where each target is computed at once, nor where those
    that wait heartbeat no sooner than others.
    """
    return settings.assignment_interval_ms > 0 and settings.rebalance_interval_ms > 0
