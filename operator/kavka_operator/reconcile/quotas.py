"""What must be done so that a cluster enforces the quota that a resource wants.

Only keys that the resource names, or once set, are its own; a key that somebody set by hand on the same entity stays.
An override is a function of the time that is handed in, so it begins and ends by itself at the next look. A limit of
the whole cluster is divided among all brokers that there are to be, rounded down: together they never allow more, also
while one of them is away and when it is back.
"""

from collections.abc import Mapping
from datetime import datetime

from kavka_broker.core.quota.entity import ENFORCED, WHOLE_KEYS
from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import KAFKA_KEYS, AnyEntity, ClientQuota, Override, entity_of
from kavka_operator.domain.entities import entity_text
from kavka_operator.domain.plan import AlterQuota, KafkaPlan, Plan, Word, ready, reconciling, stalled

NOT_PER_BROKER = frozenset({"controller_mutation_rate"})
"""Counted by the active controller alone, so never divided."""


def reconcile(
    wanted: ClientQuota,
    seen: Mapping[str, float],
    brokers: int,
    now: datetime,
    older: ClientQuota | None = None,
) -> KafkaPlan:
    """The plan for one quota.

    `seen` are the entity's values in Kafka; `older` claims the same entity and came first.
    """
    entity = entity_of(wanted.spec.entity)
    if older is not None:
        return Plan(words=stalled("Conflict", f"{older.identity} limits {entity_text(entity)} too and is older"))
    target = target_values(wanted, brokers, now)
    to_set = {key: value for key, value in target.items() if seen.get(key) != value}
    to_remove = tuple(sorted(key for key in wanted.status.applied if key in seen and key not in target))
    if to_set or to_remove:
        action = AlterQuota(entity, to_set, to_remove)
        return Plan((action,), reconciling("Applying", str(action)))
    return Plan(words=_words_at_rest(wanted, target, brokers, now))


def retire(gone: ClientQuota, seen: Mapping[str, float], inherited: Mapping[str, float] | None = None) -> KafkaPlan:
    """What is left to do for a quota whose resource is deleted: take back what it has set.

    `inherited` are the limits that another resource wants for the entity; those are never away in between.
    """
    ours = tuple(sorted(key for key in gone.status.applied if key in seen and key not in (inherited or {})))
    return Plan((AlterQuota(entity_of(gone.spec.entity), {}, ours),)) if ours else Plan()


def target_values(wanted: ClientQuota, brokers: int, now: datetime) -> dict[str, float]:
    """The values that Kafka should have for the entity, for each broker."""
    if wanted.spec.mode == "Observe":
        return {}
    values = _wanted_values(wanted, now)
    if wanted.spec.scope == "PerBroker":
        return values
    return {key: share for key, value in values.items() if (share := _share(key, value, max(brokers, 1)))}


def _share(key: str, value: float, brokers: int) -> float:
    """The limit of one broker, so that all brokers together allow no more than `value`; may be 0."""
    if key in NOT_PER_BROKER:
        return value
    return float(value // brokers) if key in WHOLE_KEYS else value / brokers


def _wanted_values(wanted: ClientQuota, now: datetime) -> dict[str, float]:
    """The limits as the resource has them now, with those of the override in force."""
    values = wanted.spec.limits.kafka_values()
    if (override := active_override(wanted, now)) is not None:
        values |= override.limits.kafka_values()
    return values


def active_override(wanted: ClientQuota, now: datetime) -> Override | None:
    """The override in force, or None; of several the last in the list."""
    active = [override for override in wanted.spec.overrides if override.begin <= now < override.until]
    return active[-1] if active else None


def unmanaged(seen: Mapping[AnyEntity, Mapping[str, float]], quotas: list[ClientQuota]) -> tuple[str, ...]:
    """The entities that have a quota in Kafka and no resource."""
    declared = {entity_of(quota.spec.entity) for quota in quotas}
    return tuple(sorted(entity_text(entity) for entity in seen if entity not in declared))


def _words_at_rest(wanted: ClientQuota, target: Mapping[str, float], brokers: int, now: datetime) -> tuple[Word, ...]:
    if wanted.spec.mode == "Observe":
        return ready("observed only; nothing is limited", "Observed")
    limits = _wanted_values(wanted, now)
    if small := [key for key in limits if key not in target]:
        fields = ", ".join(f"{KAFKA_KEYS[key]} {spell(limits[key])}" for key in small)
        words = f"{fields} is less than 1 for each of {brokers} brokers; write at least {brokers}, or scope: PerBroker"
        return stalled("TooSmallToDivide", words)
    if idle := [key for key in limits if key not in ENFORCED]:
        fields = ", ".join(KAFKA_KEYS[key] for key in idle)
        words = f"{fields}: kept in Kafka, and no broker of this version enforces it; those that are enforced:"
        return stalled("NotEnforced", f"{words} {', '.join(KAFKA_KEYS[key] for key in ENFORCED)}")
    if (override := active_override(wanted, now)) is not None:
        return ready(f"override until {override.until:%Y-%m-%dT%H:%M:%SZ}: {override.reason}", "Overridden")
    return ready(f"in force on every broker{_division(wanted, target, limits, brokers)}")


def _division(wanted: ClientQuota, target: Mapping[str, float], limits: Mapping[str, float], brokers: int) -> str:
    """Words for the limit of each broker, where the limit is that of the whole cluster."""
    if wanted.spec.scope == "PerBroker" or brokers < 2:
        return ""
    shares = [f"{key}={spell(target[key])} ({spell(limits[key])} / {brokers})" for key in sorted(target)]
    return f": {', '.join(shares)}"
