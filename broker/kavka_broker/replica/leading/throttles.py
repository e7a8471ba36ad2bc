"""Throttled replication (KIP-73): a reassignment must not take the network from clients.

A topic names which of its replicas are throttled as leaders and as followers (`leader.` and
`follower.replication.throttled.replicas`), a broker how much they may move together (`...throttled.rate`). Only
followers outside the in-sync set are held back: the others are what acknowledgements wait for. What goes beyond the
rate waits until the rate is below it again; a leader answers without records meanwhile, a follower does not ask. What
moves between the log directories of a broker has such a rate too, one for all of them.
"""

from collections.abc import Callable
from typing import Final

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.effective_config import EffectiveConfig
from kavka_broker.core.quota.rate import SampledRate, SampleWindow
from kavka_broker.interfaces import Clock
from kavka_broker.replica.leading.partition import Partition

UNLIMITED: Final = 2.0**62
EVERY: Final = "*"


class Throttle:
    """The rate of one kind. `limit` is read again each time: it is altered while replication runs."""

    def __init__(self, window: SampleWindow, limit: Callable[[], float], clock: Clock) -> None:
        self.bytes_total = 0
        self._rate = SampledRate(window)
        self.limit = limit
        self._clock = clock

    def record(self, size_bytes: int) -> None:
        self.bytes_total += size_bytes
        self._rate.record(size_bytes, int(self._clock.monotonic_ms()))

    @property
    def byte_rate(self) -> float:
        """Return the bytes a second over the last window."""
        return self._rate.measure(int(self._clock.monotonic_ms()))

    @property
    def allows_nothing(self) -> bool:
        """Whether the limit is 0: not even the first bytes pass."""
        return self.limit() <= 0

    @property
    def is_exceeded(self) -> bool:
        limit = self.limit()
        return limit < UNLIMITED and self._rate.measure(int(self._clock.monotonic_ms())) > limit


def throttle(side: str, config: BrokerConfig, effective: EffectiveConfig, clock: Clock) -> Throttle:
    """Return the rate of the "leader" or the "follower"."""
    window = SampleWindow(
        config["replication.quota.window.num"], config["replication.quota.window.size.seconds"] * 1000
    )
    key = f"{side}.replication.throttled.rate"
    return Throttle(window, lambda: float(effective.broker.whole(key)), clock)


def throttle_of_moves(config: BrokerConfig, effective: EffectiveConfig, clock: Clock) -> Throttle:
    """Return the rate of moves between log directories."""
    window = SampleWindow(
        config["alter.log.dirs.replication.quota.window.num"],
        config["alter.log.dirs.replication.quota.window.size.seconds"] * 1000,
    )
    return Throttle(window, lambda: float(effective.broker["replica.alter.log.dirs.io.max.bytes.per.second"]), clock)


class Throttles:
    """Rates of both sides, for the replicas of broker `node_id`."""

    def __init__(self, node_id: int, leader: Throttle, follower: Throttle) -> None:
        self._node_id = node_id
        self.by_side: Final = {"leader": leader, "follower": follower}
        self._leader = leader
        self._follower = follower

    def of_followers(self, partition: Partition) -> Throttle | None:
        """Return the leader's throttle for followers of this partition that are not in sync, if any."""
        replicas = partition.log.config.leader_replication_throttled_replicas
        return self._leader if replicas and self._is_listed(partition, replicas) else None

    def took(self, partition: Partition, size_bytes: int) -> bool:
        """Count bytes that a follower has fetched; returns whether to pause now."""
        if not self._is_listed(partition, partition.log.config.follower_replication_throttled_replicas):
            return False
        self._follower.record(size_bytes)
        return self.must_wait(partition)

    def must_wait(self, partition: Partition) -> bool:
        """Whether a follower must not fetch more of the partition for now."""
        return (
            self._node_id not in partition.isr
            and self._is_listed(partition, partition.log.config.follower_replication_throttled_replicas)
            and self._follower.is_exceeded
        )

    def _is_listed(self, partition: Partition, replicas: tuple[str, ...]) -> bool:
        return bool(replicas) and (EVERY in replicas or f"{partition.index}:{self._node_id}" in replicas)
