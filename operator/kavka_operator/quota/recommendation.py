"""A limit that fits what a client does: the 95th percentile of its demand at the busiest broker, with headroom.

A throttled client shows its limit, not its demand: usage alone would recommend each limit again. Brokers estimate the
demand: the rate over the share of the time in which the client was not held back. The less it was free, the less that
tells, so no more than `RAISE_MAX` times the rate reached is believed, and the limit that fits is found in steps.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kavka_broker.core.quota.entity import Entity, QuotaKey
from kavka_broker.core.quota.resolve import resolve
from kavka_operator.api.quota import AnyEntity

ANYBODY = "ANONYMOUS"
HEADROOM = 1.3
PERCENTILE = 95.0
RAISE_MAX = 4.0  # times the rate reached: of who is nearly always held the estimate may be far too high
LIMIT_BYTES_MIN = 64 * 1024
STEPS_LOG2 = 3  # eight steps from a power of two to the next
KEYS: Mapping[str, str] = {"produce": QuotaKey.PRODUCER_BYTE_RATE.value, "fetch": QuotaKey.CONSUMER_BYTE_RATE.value}


@dataclass(frozen=True, slots=True, order=True)
class Observed:
    """The client that was observed, where, and in what: produce or fetch. An empty part is any client."""

    user: str
    client_id: str
    kind: str
    broker: str


@dataclass(slots=True)
class Samples:
    """Samples of a client: rates, and the demand where it is estimated, in bytes a second."""

    rates: list[float] = field(default_factory=list)
    demands: list[float] = field(default_factory=list)

    def add(self, rate: float | None, demand: float | None) -> None:
        """Add a sample; nothing where there is neither."""
        if rate is not None:
            self.rates.append(rate)
        if demand is not None or rate is not None:
            self.demands.append(max(demand or 0.0, rate or 0.0))


@dataclass(frozen=True, slots=True)
class Fit:
    """A limit for one key, and what it is made from. `now` is the limit that the entity has of its own."""

    key: str
    limit: int
    demand: float
    rate: float
    broker: str
    count: int
    now: float | None = None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Limits for one entity. `others` are the limits that it has already and that nothing is recommended for."""

    entity: Entity
    fits: tuple[Fit, ...]
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_new(self) -> bool:
        """Whether the entity has no limit yet, so that a new one should be observed first."""
        return not self.others and all(fit.now is None for fit in self.fits)


def recommend(
    observed: Mapping[Observed, Samples],
    limits: Mapping[AnyEntity, Mapping[str, float]],
    *,
    headroom: float = HEADROOM,
    percent: float = PERCENTILE,
) -> list[Recommendation]:
    """A recommendation for each entity that used anything, by its name."""
    fits: dict[Entity, dict[str, Fit]] = {}
    for who, samples in sorted(observed.items()):
        client, key = entity_of_client(who), KEYS.get(who.kind)
        if client is None or key is None or not any(samples.demands):
            continue
        entity = _that_holds(client, key, who, limits)
        fit = _fit(key, who.broker, samples, limits.get(entity, {}).get(key), headroom, percent)
        before = fits.setdefault(entity, {}).get(key)
        fits[entity][key] = fit if before is None or fit.limit > before.limit else before
    return [_recommendation(entity, fits[entity], limits.get(entity, {})) for entity in sorted(fits, key=str)]


def entity_of_client(who: Observed) -> Entity | None:
    """The entity that a quota on this client alone would have; None for what stands for many.

    Where nobody says who they are every client is the same user, and the client id alone tells them apart.
    """
    if "__other__" in {who.user, who.client_id} or who.client_id.endswith("*"):
        return None
    user = None if who.user == ANYBODY and who.client_id else who.user or None
    return Entity(user, who.client_id or None) if user or who.client_id else None


def _that_holds(entity: Entity, key: str, who: Observed, limits: Mapping[AnyEntity, Mapping[str, float]]) -> Entity:
    """The entity, or the client by its user too, where other quotas would win over a limit of the entity."""
    if not who.user or not who.client_id:
        return entity
    others = {other: 1.0 for other, values in limits.items() if key in values and isinstance(other, Entity)}
    effective = resolve({**others, entity: 1.0}, who.user, who.client_id)
    return entity if effective is None or effective.entity == entity else Entity(who.user, who.client_id)


def percentile(values: Sequence[float], percent: float) -> float:
    """The least value that so many per cent of all do not exceed."""
    assert values, "of nothing there is no percentile"
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def rounded(limit: float) -> int:
    """A limit as a person would write it: up, to an eighth of its power of two."""
    least = max(limit, float(LIMIT_BYTES_MIN))
    step = 1 << (math.floor(math.log2(least)) - STEPS_LOG2)
    return math.ceil(least / step) * step


def _fit(key: str, broker: str, samples: Samples, now: float | None, headroom: float, percent: float) -> Fit:
    demand = percentile(samples.demands, percent)
    rate = percentile(samples.rates, percent) if samples.rates else 0.0
    if rate:
        demand = min(demand, RAISE_MAX * rate)
    return Fit(key, rounded(demand * headroom), demand, rate, broker, len(samples.demands), now)


def _recommendation(entity: Entity, fits: Mapping[str, Fit], limits: Mapping[str, float]) -> Recommendation:
    known = {key.value for key in QuotaKey}
    others = {key: limit for key, limit in limits.items() if key in known and key not in fits}
    return Recommendation(entity, tuple(fits[key] for key in sorted(fits)), others)
