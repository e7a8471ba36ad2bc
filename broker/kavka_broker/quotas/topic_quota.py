"""The rates that topics allow their clients: whoever produces to, or fetches from, a topic over its limit has to wait.

A topic with a limit has an allowance for all of its partitions that this broker serves together, or one for each of
them. Every client of the topic draws on it, beside its own quota, and waits for the longest of all delays. What nodes
fetch of each other counts in none. Topics without a limit are not known here: one lookup tells.

What is charged has passed already, as with Produce under a client's quota, and the client waits until what it took has
come in at the limit. A sampled rate forgets what was too much a window ago, and with it each client of the topic would
have a request over the limit in every window (fifty clients came to twice the limit); an `Allowance` forgets nothing.
To withhold answers instead would starve the clients whose delay ends last. The first burst is that of a sampled rate,
and so is the usage that is shown.
"""

from collections.abc import Mapping
from typing import Final

from kavka_broker.core.quota.allowance import Allowance
from kavka_broker.core.quota.entity import TopicEntity
from kavka_broker.core.quota.rate import SampledRate, SampleWindow
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.quotas.entity_usage import ENTITIES_MAX, EntityUsage
from kavka_broker.quotas.sensor import HeldTime, Holding

PARTITION_COST: Final = 4  # of a slice
OWED_MS_MAX: Final = 60_000
"""What others owe makes nobody wait for longer: some clients do not wait, and come back by new connections."""

TOGETHER: Final = -1  # the key where partitions share the allowance


class Drawn:
    """What was drawn on one allowance."""

    __slots__ = ("allowance", "rate")

    def __init__(self, window: SampleWindow, now_ms: int) -> None:
        self.allowance = Allowance(max(int(window.value_max(1000)), 1), now_ms)
        self.rate = SampledRate(window)

    def charge(self, size_bytes: int, limit: int, now_ms: int) -> int:
        """Record bytes; returns the milliseconds until they have come in."""
        self.rate.record(size_bytes, now_ms)
        self.allowance.forgive(OWED_MS_MAX, now_ms, limit)
        return self.allowance.spend(size_bytes, now_ms, limit)


class SharedLimit:
    """One limit of a topic, what has been used of it, and for how long it has held connections back."""

    __slots__ = ("_drawn", "_window", "entity", "held", "limit")

    def __init__(self, entity: TopicEntity, limit: int, window: SampleWindow) -> None:
        assert limit >= 1, limit
        self.entity = entity
        self.limit = limit
        self.held = HeldTime()
        self._window = window
        self._drawn: dict[int, Drawn] = {}  # by partition; only partitions of this broker are charged

    def alter(self, limit: int, now_ms: int) -> None:
        """Hold to another limit from now on; what has come in until now has come at the former."""
        for drawn in self._drawn.values():
            drawn.allowance.advance(now_ms, self.limit)
        self.limit = limit

    def charge(self, sizes: Mapping[int, int], now_ms: int, cost: Cost) -> Work[int]:
        """Record bytes by partition; returns the milliseconds to wait."""
        if not self.entity.each_partition:
            return self._charge(TOGETHER, sum(sizes.values()), now_ms)
        delay_ms = 0
        for partition, size_bytes in sizes.items():
            delay_ms = max(delay_ms, self._charge(partition, size_bytes, now_ms))
            if cost.add(PARTITION_COST):
                yield
        return delay_ms

    def _charge(self, partition: int, size_bytes: int, now_ms: int) -> int:
        drawn = self._drawn.get(partition)
        if drawn is None:
            drawn = self._drawn[partition] = Drawn(self._window, now_ms)
        return drawn.charge(size_bytes, self.limit, now_ms)

    def holding(self) -> Holding:
        """Return what counts the time for which one connection is held."""
        return Holding(self.held)

    def usage(self, now_ms: int) -> EntityUsage:
        """Return the figures: of partitions that have an allowance each, the usage is that of the busiest."""
        used = max((drawn.rate.measure(now_ms) for drawn in self._drawn.values()), default=0.0)
        held_ms, connections = self.held.any_ms(now_ms), self.held.connections
        return EntityUsage(self.entity, self.limit, used, len(self._drawn), held_ms, connections)


class LimitedTopic:
    """A topic with limits on one way of its bytes."""

    __slots__ = ("by_entity", "name", "topic_id")

    def __init__(self, name: str, topic_id: bytes, by_entity: Mapping[TopicEntity, SharedLimit]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.by_entity = by_entity

    def charge(self, sizes: Mapping[int, int], now_ms: int, cost: Cost) -> Work[list[tuple[int, SharedLimit]]]:
        """Record bytes by partition. Returns each delay with the limit that causes it."""
        assert sizes, f"nothing of {self.name} has passed"
        delays = []
        for limit in self.by_entity.values():
            if delay_ms := (yield from limit.charge(sizes, now_ms, cost)):
                delays.append((delay_ms, limit))  # noqa: PERF401 - comprehensions never yield
        return delays


class TopicQuota:
    """The topics whose producers, or whose consumers, have a limit. `limited` has each by its name and by its id."""

    def __init__(self, window: SampleWindow) -> None:
        self._window = window
        self.limited: dict[bytes | str, LimitedTopic] = {}

    def limit(self, name: str, topic_id: bytes, limits: Mapping[TopicEntity, int], now_ms: int = 0) -> None:
        """Take over the topic's limits from the next request on; what it has used stays, unless it is another topic."""
        before = self.limited.get(name)
        if before is not None:
            self.forget(before.topic_id)
        known = before.by_entity if before is not None and before.topic_id == topic_id else {}
        shared = {}
        for entity, limit in limits.items():
            shared[entity] = known.get(entity) or SharedLimit(entity, limit, self._window)
            shared[entity].alter(limit, now_ms)
        if shared:
            self.limited[name] = self.limited[topic_id] = LimitedTopic(name, topic_id, shared)

    def forget(self, topic_id: bytes) -> None:
        """Forget a topic, if it is known: it was deleted."""
        if (topic := self.limited.pop(topic_id, None)) is not None:
            del self.limited[topic.name]

    @property
    def limits_total(self) -> int:
        """How many limits there are."""
        return sum(len(topic.by_entity) for topic in self.limited.values()) // 2  # each topic is there twice

    def usages(self, now_ms: int) -> Work[list[EntityUsage]]:
        """Return the figures of `ENTITIES_MAX` limits, those that have held a connection before the others."""
        held, others, cost = list[SharedLimit](), list[SharedLimit](), Cost()
        for key, topic in list(self.limited.items()):
            for limit in topic.by_entity.values() if isinstance(key, str) else ():
                (held if limit.held.any_ms(now_ms) else others).append(limit)
            if cost.add(1):
                yield
        found = []
        for limit in [*held, *others][:ENTITIES_MAX]:
            found.append(limit.usage(now_ms))
            if cost.add(PARTITION_COST * (found[-1].shares + 1)):
                yield
        return found
