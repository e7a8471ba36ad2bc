"""The figures of a configured quota: its limit, what it lets through, and for how long it has held anybody back.

A quota on a default is one entity with a share for each name. Its usage is that of the share that uses most, since
that one meets the limit first. Its held time is that in which at least one connection of any share was held.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from kavka_broker.core.quota.entity import Entity, IpEntity, TopicEntity
from kavka_broker.core.quota.resolve import is_shadowed
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.quotas.sensor import HeldTime, Sensor

E = TypeVar("E", Entity, IpEntity)
ENTITIES_MAX: Final = 500  # that are shown, of each type of quota
SENSOR_COST: Final = 4  # of a slice
ENTITY_COST: Final = 10


@dataclass(frozen=True, slots=True)
class EntityUsage:
    """What one configured quota does on this broker."""

    entity: Entity | IpEntity | TopicEntity
    limit: float
    usage: float = 0.0  # in the unit of the limit
    shares: int = 0
    held_ms: int = 0
    held_connections: int = 0
    is_shadowed: bool = False


def entity_usages(
    limits: Mapping[Entity, float],
    sensors: Iterable[Sensor],
    held: Mapping[Entity, HeldTime],
    now_ms: int,
    find_again: Callable[[Sensor], None],
) -> Work[list[EntityUsage]]:
    """Return the figures of `ENTITIES_MAX` entities, those that have held a connection before the others.

    `find_again` sees to it that a sensor knows its limit of now.
    """
    shown = yield from shown_of(limits, held, now_ms)
    used, cost = dict[Entity, tuple[float, int]](), Cost()
    for sensor in list(sensors):
        find_again(sensor)
        entity = None if sensor.effective is None else sensor.effective.entity
        if entity is not None and entity in shown and sensor.rate is not None:
            usage, shares = used.get(entity, (0.0, 0))
            used[entity] = max(usage, sensor.rate.measure(now_ms)), shares + 1
        if cost.add(SENSOR_COST):
            yield
    found = []
    for entity, limit in shown.items():
        time, hidden = held.get(entity) or HeldTime(), is_shadowed(limits, entity)
        usage, shares = used.get(entity, (0.0, 0))
        found.append(EntityUsage(entity, limit, usage, shares, time.any_ms(now_ms), time.connections, hidden))
        if cost.add(ENTITY_COST):
            yield
    return found


def shown_of(limits: Mapping[E, float], held: Mapping[E, HeldTime], now_ms: int) -> Work[Mapping[E, float]]:
    """Choose the entities that are shown."""
    if len(limits) <= ENTITIES_MAX:
        return limits
    chosen, cost = dict[E, float](), Cost()
    for entity, time in list(held.items()):
        if time.any_ms(now_ms) and entity in limits:
            chosen[entity] = limits[entity]
        if cost.add(1):
            yield
    return dict(islice({**chosen, **limits}.items(), ENTITIES_MAX))
