"""Limits that are only observed: how long they would hold clients back, while nobody is.

Who wants to set a quota asks first what it would do. An observed limit is resolved among the limits in force as if it
were one of them, and charged with all that passes. Where it would make a client wait, that time counts, and never for
more than the time that goes by: would-be delays that overlap count once.
"""

from collections.abc import Mapping
from dataclasses import replace

from kavka_broker.core.quota.bucket import TokenBucket
from kavka_broker.core.quota.entity import Entity, IpEntity
from kavka_broker.core.quota.rate import SampledRate, SampleWindow
from kavka_broker.core.quota.resolve import as_kept
from kavka_broker.loop.slices import Work
from kavka_broker.quotas.entity_usage import EntityUsage
from kavka_broker.quotas.quota_shares import SENSORS_MAX, Shares
from kavka_broker.quotas.resolver import KafkaRule, Standing
from kavka_broker.quotas.sensor import Sensor


class WouldBeHeld:
    """A time made of delays that overlap."""

    __slots__ = ("_total_ms", "_until_ms")

    def __init__(self) -> None:
        self._total_ms = 0
        self._until_ms = 0

    def delay(self, delay_ms: int, now_ms: int) -> None:
        """Count a delay that begins now."""
        end_ms = now_ms + delay_ms
        if end_ms > self._until_ms:
            self._total_ms += end_ms - max(self._until_ms, now_ms)
            self._until_ms = end_ms

    def total_ms(self, now_ms: int) -> int:
        """Return the time until now."""
        return self._total_ms - max(self._until_ms - now_ms, 0)


class ObservedRule:
    """Kafka's levels over the limits in force and the observed ones; finds nothing where an enforced one wins."""

    def __init__(self) -> None:
        self._kafka = KafkaRule()
        self.observed: Mapping[Entity, float] = {}

    def find(self, user: str, client_id: str) -> Standing:
        standing = self._kafka.find(user, client_id)
        if standing.effective is not None and standing.effective.entity in self.observed:
            return standing
        return Standing(None, standing.share)

    def update(self, limits: Mapping[Entity, float]) -> None:
        self._kafka.update(limits)


class ObservedQuota(Shares):
    """The observed limits of one kind of quota; those of bytes as they are here."""

    def __init__(self, window: SampleWindow, sensors_max: int = SENSORS_MAX) -> None:
        self._observed_rule = ObservedRule()
        super().__init__(window, sensors_max, rule=self._observed_rule)
        self._would: dict[Entity, WouldBeHeld] = {}
        self.is_on = False
        """Whether any limit is observed."""

    def observe(self, enforced: Mapping[Entity | IpEntity, float], limits: Mapping[Entity | IpEntity, float]) -> None:
        """Take over the limits in force and, over them, those to be observed."""
        observed = {as_kept(name): limit for name, limit in limits.items() if isinstance(name, Entity) and limit >= 0}
        self._observed_rule.observed = observed
        self.is_on = bool(observed)
        self._would = {entity: self._would.get(entity) or WouldBeHeld() for entity in observed}
        among = dict(observed)
        for other, limit in enforced.items() if observed else ():
            if isinstance(other, Entity) and limit >= 0:
                among.setdefault(as_kept(other), limit)
        self._take_over(among, frozenset())  # also where only one that was observed is enforced now

    def charge(self, user: str, client_id: str, used: float, now_ms: int) -> None:
        """Record what has passed."""
        sensor = self.resolved.get((user, client_id)) or self._resolve(user, client_id, now_ms)
        sensor.last_used_ms = now_ms
        if sensor.effective is None or sensor.rate is None:
            return
        delay_ms = self._delay_ms(sensor, sensor.rate, used, now_ms)
        if delay_ms:
            self._would[sensor.effective.entity].delay(delay_ms, now_ms)

    def _delay_ms(self, sensor: Sensor, rate: SampledRate, used: float, now_ms: int) -> int:
        assert sensor.limit is not None, "the sensor has a limit"
        return rate.charge(used, now_ms, sensor.limit)

    def observed(self, now_ms: int) -> Work[list[EntityUsage]]:
        """Return a line for each observed limit; its held time is that for which it would have held anybody back."""
        lines = yield from self.entities(now_ms)
        return [
            replace(line, held_ms=self._would[line.entity].total_ms(now_ms))
            for line in lines
            if isinstance(line.entity, Entity) and line.entity in self._would
        ]


class ObservedRequests(ObservedQuota):
    """Observed limits of the time on the loop: a delay is at most one sample long."""

    def _delay_ms(self, sensor: Sensor, rate: SampledRate, used: float, now_ms: int) -> int:
        return min(super()._delay_ms(sensor, rate, used, now_ms), self._window.size_ms)


class ObservedMutations(ObservedQuota):
    """Observed limits of mutations: of a token bucket, which would hold while it is below zero."""

    def _delay_ms(self, sensor: Sensor, rate: SampledRate, used: float, now_ms: int) -> int:
        assert sensor.limit is not None, "the sensor has a limit"
        if sensor.bucket is None:
            sensor.bucket = TokenBucket(self._window)
        rate.record(used, now_ms)
        sensor.bucket.spend(used, now_ms, sensor.limit)
        return sensor.bucket.throttle_ms(sensor.limit)
