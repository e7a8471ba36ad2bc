"""The shares of one kind of quota: which clients draw on the same allowance, what they have used, and their limit.

The cost of a request without a quota is one lookup in a dictionary. Which quota applies is resolved once for each
(user, client id) and kept until a limit changes. Everything that grows with the names that clients make up is bounded:

- `SENSORS_MAX` shares, with `NAMES_BYTES_MAX` of names; one user, and all clients without a login together, have half
  of both. A client that comes later draws on a sensor that such late-comers have in common: those of its user, where
  that user has used its half up. The share of a quota that names a user or a client id always has a sensor;
- `SENSORS_MAX` resolved clients with `RESOLVED_BYTES_MAX` of names; the cache starts again when it is full;
- `SERIES_MAX` shares with a name in the metrics, the others are summed up under `__other__`.

Nothing that a client does before its login comes here: see `RequestQuota.before_login`. A client id of more than
`NAME_CHARACTERS_MAX` characters has been shortened, and so is one in a quota.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from kavka_broker.core.client_names import label_of
from kavka_broker.core.quota.allowance import Allowance
from kavka_broker.core.quota.entity import Entity, IpEntity
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.core.quota.resolve import Effective, Share, as_kept, is_of_one_share
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.quotas.entity_usage import EntityUsage, entity_usages
from kavka_broker.quotas.resolver import KafkaRule, Rule
from kavka_broker.quotas.sensor import OTHER, HeldTime, Holding, Sensor, Usage
from kavka_broker.quotas.sensor_bounds import Room, size_of

SENSORS_MAX = 10_000
SERIES_MAX = 100
RESOLVED_BYTES_MAX = 4 * 1024 * 1024
RESOLVED_BYTES = 200  # of an entry beside its names
ANONYMOUS = "ANONYMOUS"
IDLE_MS_MAX = 3_600_000
PART_BURST_MS = 250
SENSOR_COST = 4  # of a slice

DELAY_BUCKETS_MS = (10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000)


@dataclass(frozen=True, slots=True)
class Overflow:
    """The key of the sensor that late-comers under the same quota have in common: of a user that has used its half of
    the room up, or else of all that log in.
    """

    entity: Entity | None
    user: str


class Shares:
    """The sensors of one kind of quota. Its subclasses say what is recorded, and how long a client has to wait."""

    def __init__(
        self,
        window: SampleWindow,
        sensors_max: int = SENSORS_MAX,
        series_max: int = SERIES_MAX,
        rule: Rule | None = None,
    ) -> None:
        self._window = window
        self._window_of_parts = replace(window, first_burst_ms=PART_BURST_MS)
        self._parts: Collection[Entity | IpEntity] = frozenset()
        self._rule = rule or KafkaRule()
        self._given: Mapping[Entity | IpEntity, float] = {}
        self._limits: Mapping[Entity, float] = {}  # those of clients that hold
        self._sensors_max = sensors_max
        self._series_max = series_max
        self.sensors: Final[dict[Share | Overflow, Sensor]] = {}
        self.room: Final = Room(sensors_max)
        #: Clients whose sensor is known; `sensor_of` finds it for the others.
        self.resolved: Final[dict[tuple[str, str], Sensor]] = {}
        self._resolved_bytes = 0
        self._labels: set[tuple[str, str]] = {(OTHER, OTHER)}
        self._expired = Usage(OTHER, OTHER)
        self._held_by_entity: dict[Entity, HeldTime] = {}  # of those that are configured, once one is held
        self._held = HeldTime()  # of all
        self._changes = 0  # of limits
        self.overflows_total = 0
        self.delay_counts = [0] * (len(DELAY_BUCKETS_MS) + 1)
        self.delay_ms_total = 0

    def held(self, user: str, client_id: str, now_ms: int) -> Holding:
        """Return the counters of the time for which this client's connections are held back."""
        sensor = self.resolved.get((user, client_id)) or self._resolve(user, client_id, now_ms)
        times = sensor.held, self._held_of(sensor.effective), self._held
        return Holding(*times, rest_ms=sensor.rest_of())

    @property
    def held_connections(self) -> int:
        """How many connections this type of quota holds back, now."""
        return self._held.connections

    def effective(self, user: str, client_id: str, now_ms: int) -> Effective | None:
        """Return the quota that applies to a client."""
        return (self.resolved.get((user, client_id)) or self._resolve(user, client_id, now_ms)).effective

    def _held_of(self, effective: Effective | None) -> HeldTime:
        if effective is None or effective.entity not in self._limits:  # a callback may name any
            return HeldTime()
        return self._held_by_entity.setdefault(effective.entity, HeldTime())

    def _sensor(self, user: str, client_id: str, now_ms: int) -> Sensor:
        sensor = self.resolved.get((user, client_id)) or self._resolve(user, client_id, now_ms)
        sensor.last_used_ms = now_ms
        return sensor

    def update(
        self,
        limits: Mapping[Entity | IpEntity, float],
        parts: Collection[Entity | IpEntity] = frozenset(),
        now_ms: int = 0,
    ) -> None:
        """Other limits hold from the next request on; sensors keep what they have recorded.

        `parts` are entities whose limit is a part of the whole cluster's budget. What one broker has used before is not
        for another to use again, so these have an `Allowance`, which began with a burst of `PART_BURST_MS`.
        Metadata that Apache Kafka wrote may have limits below 0, or that are no numbers: it throttles nobody by them.
        """
        if limits == self._given and frozenset(parts) == self._parts:
            return  # another kind of quota has changed
        of_clients = {as_kept(name): limit for name, limit in limits.items() if isinstance(name, Entity) and limit >= 0}
        self._take_over(of_clients, frozenset(parts), now_ms)
        self._given = dict(limits)

    def _take_over(
        self, of_clients: Mapping[Entity, float], parts: Collection[Entity | IpEntity], now_ms: int = 0
    ) -> None:
        """Hold clients to other limits. Each finds its own when it is heard of, or looked at, next: at once it would
        take long with many of them. Parts of budgets change now, since their connections wait by them.
        """
        held = self._held_by_entity
        self._held_by_entity = {entity: time for entity, time in held.items() if entity in of_clients}
        self._limits, self._parts = of_clients, parts
        self._rule.update(of_clients)
        self._forget_resolved()
        self._changes += 1
        for sensor in self.sensors.values():
            if sensor.allowance is not None:
                if sensor.limit is not None:
                    sensor.allowance.advance(now_ms, sensor.limit)
                self._find_again(sensor, now_ms)

    def _find_again(self, sensor: Sensor, now_ms: int) -> None:
        """Ask the rule for the limit of a sensor, if limits have changed since it was asked."""
        if sensor.found_in != self._changes:
            effective, share = self._rule.find(*sensor.client)
            self._apply(sensor, effective if share == sensor.share else None, now_ms)

    def _apply(self, sensor: Sensor, effective: Effective | None, now_ms: int) -> None:
        sensor.found_in = self._changes
        if effective is None or effective.entity not in self._parts:
            sensor.allowance = None
            sensor.apply(effective, self._window)
            return
        if sensor.allowance is None:
            sensor.allowance = Allowance(PART_BURST_MS, now_ms)
        sensor.apply(effective, self._window_of_parts)

    def resolve_later(self, client: tuple[str, str] | None) -> None:
        """Ask the rule again when this client is heard of next; None stands for each of them."""
        if client is None:
            self._forget_resolved()
        else:
            self.resolved.pop(client, None)

    def _forget_resolved(self) -> None:
        self.resolved.clear()
        self._resolved_bytes = 0

    def expire(self, now_ms: int) -> None:
        """Forget clients that have been idle for an hour."""
        idle = [key for key, sensor in self.sensors.items() if now_ms - sensor.last_used_ms >= IDLE_MS_MAX]
        for key in idle:
            sensor = self.sensors.pop(key)
            if sensor.room_bytes:
                self.room.give_back(sensor.client[0], sensor.room_bytes)
            if sensor.is_named:
                self._labels.discard(labels_of(sensor))
            else:
                self._expired = summed(self._expired, sensor, now_ms)
        if idle:
            self._forget_resolved()

    def usages(self, now_ms: int) -> Work[list[Usage]]:
        """Return a line for each share that has a name, and one for all others once there are any."""
        lines, other, cost = list[Usage](), self._expired, Cost()
        for sensor in list(self.sensors.values()):
            self._find_again(sensor, now_ms)
            if sensor.is_named:
                lines.append(usage_of(sensor, now_ms, self._window))
            else:
                other = summed(other, sensor, now_ms)
            if cost.add(SENSOR_COST):
                yield
        return [*lines, other] if self.overflows_total else lines

    def entities(self, now_ms: int) -> Work[list[EntityUsage]]:
        """Return a line for each configured quota, of the first of them."""
        find_again = partial(self._find_again, now_ms=now_ms)
        return entity_usages(self._limits, self.sensors.values(), self._held_by_entity, now_ms, find_again)

    @property
    def entities_total(self) -> int:
        """Return how many quotas are configured."""
        return len(self._limits)

    def _throttled(self, sensor: Sensor, delay_ms: int, now_ms: int) -> None:
        sensor.throttled(delay_ms, now_ms, self._window)
        self.delay_ms_total += delay_ms
        self.delay_counts[bisect_left(DELAY_BUCKETS_MS, delay_ms)] += 1

    def _resolve(self, user: str, client_id: str, now_ms: int) -> Sensor:
        effective, share = self._rule.find(user, client_id)
        sensor = self.sensors.get(share) or self._new_sensor(share, effective, (user, client_id))
        self._apply(sensor, effective, now_ms)
        if not sensor.is_named:
            self._name(sensor, now_ms)
        self._resolved_bytes += RESOLVED_BYTES + size_of((user, client_id))
        if len(self.resolved) >= self._sensors_max or self._resolved_bytes > RESOLVED_BYTES_MAX:
            self._forget_resolved()
        self.resolved[user, client_id] = sensor
        return sensor

    def _new_sensor(self, share: Share, effective: Effective | None, client: tuple[str, str]) -> Sensor:
        user, size_bytes = client[0], size_of(client)
        if is_of_one_share(effective):
            sensor = self.sensors[share] = Sensor(share, client)
            return sensor
        if self.room.take(user, size_bytes):
            sensor = self.sensors[share] = Sensor(share, client)
            sensor.room_bytes = size_bytes
            return sensor
        of_user = user if user == ANONYMOUS or self.room.is_over_half(user) else ""
        overflow = Overflow(None if effective is None else effective.entity, of_user)
        return self.sensors.get(overflow) or self.sensors.setdefault(overflow, Sensor(None, client))

    def _name(self, sensor: Sensor, now_ms: int) -> None:
        """Give the share a series of its own, while there is room, and unless another has the same labels.

        Clients without a quota leave half of the room to those with one. Clients without a login leave a quarter of
        their room to those with one, unless a quota names them. What was used earlier stays in the sum of the others,
        so that no counter ever falls.
        """
        room = self._series_max if sensor.limit is not None else self._series_max // 2
        if sensor.client[0] == ANONYMOUS and not is_of_one_share(sensor.effective):
            room -= room // 4
        labels = labels_of(sensor)
        if len(self._labels) > room or labels in self._labels:
            self.overflows_total += 1
            return
        self._labels.add(labels)
        self._expired = summed(self._expired, sensor, now_ms)
        sensor.reset_counters(now_ms)
        sensor.is_named = True


def labels_of(sensor: Sensor) -> tuple[str, str]:
    """Return the names of the share; "" for a part that does not matter, as Apache Kafka tags its metrics."""
    if sensor.share is None:
        return OTHER, OTHER
    return label_of(sensor.share.user or ""), label_of(sensor.share.client_id or "")


def usage_of(sensor: Sensor, now_ms: int, window: SampleWindow) -> Usage:
    rate = sensor.rate.measure(now_ms) if sensor.rate is not None and sensor.limit is not None else None
    return Usage(
        *labels_of(sensor),
        sensor.used_total,
        sensor.held.total_ms(now_ms),
        sensor.throttled_requests_total,
        sensor.effective,
        rate,
        sensor.delays.average_ms(now_ms) if sensor.delays is not None else 0.0,
        sensor.tokens(now_ms),
        rate if rate is None or sensor.demand is None else sensor.demand.estimate(rate, sensor.held, now_ms, window),
    )


def summed(total: Usage, sensor: Sensor, now_ms: int) -> Usage:
    return Usage(
        total.user,
        total.client_id,
        total.used_total + sensor.used_total,
        total.held_ms_total + sensor.held.total_ms(now_ms),
        total.throttled_requests_total + sensor.throttled_requests_total,
    )
