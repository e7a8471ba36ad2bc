"""What must be done so that a cluster enforces the quota that a resource wants.

Only keys that the resource names, or once set, are its own; a key that somebody set by hand on the same entity stays.
An override is a function of the time that is handed in, so it begins and ends by itself at the next look.
"""

from collections.abc import Mapping
from datetime import datetime

from kavka_operator.api.quota import ClientQuota, Override
from kavka_operator.quota.entities import AnyEntity, entity_of, entity_text
from kavka_operator.reconcile.plan import AlterQuota, Plan, Word, ready, reconciling, stalled

NOT_PER_BROKER = frozenset({"controller_mutation_rate"})
"""Counted by the active controller alone, so never divided."""


def reconcile(
    wanted: ClientQuota,
    seen: Mapping[str, float],
    brokers: int,
    now: datetime,
    older: ClientQuota | None = None,
) -> Plan:
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
    return Plan(words=_settled_words(wanted, now))


def retire(gone: ClientQuota, seen: Mapping[str, float], inherited: Mapping[str, float] | None = None) -> Plan:
    """What is left to do for a quota whose resource is deleted: take back what it has set.

    `inherited` are the limits that another resource wants for the entity; those are never away in between.
    """
    ours = tuple(sorted(key for key in gone.status.applied if key in seen and key not in (inherited or {})))
    return Plan((AlterQuota(entity_of(gone.spec.entity), {}, ours),)) if ours else Plan()


def target_values(wanted: ClientQuota, brokers: int, now: datetime) -> dict[str, float]:
    """The values that Kafka should have for the entity, each broker for itself."""
    if wanted.spec.mode == "Observe":
        return {}
    values = wanted.spec.limits.kafka_values()
    if (override := active_override(wanted, now)) is not None:
        values |= override.limits.kafka_values()
    if wanted.spec.scope == "PerBroker":
        return values
    return {key: value if key in NOT_PER_BROKER else value / max(brokers, 1) for key, value in values.items()}


def active_override(wanted: ClientQuota, now: datetime) -> Override | None:
    """The override in force; of several the last in the list."""
    active = [each for each in wanted.spec.overrides if each.begin <= now < each.until]
    return active[-1] if active else None


def unmanaged(seen: Mapping[AnyEntity, Mapping[str, float]], quotas: list[ClientQuota]) -> tuple[str, ...]:
    """Entities that have a quota in Kafka and no resource."""
    declared = {entity_of(quota.spec.entity) for quota in quotas}
    return tuple(sorted(entity_text(entity) for entity in seen if entity not in declared))


def _settled_words(wanted: ClientQuota, now: datetime) -> tuple[Word, ...]:
    if wanted.spec.mode == "Observe":
        return ready("observed only; nothing is limited", "Observed")
    if (override := active_override(wanted, now)) is not None:
        return ready(f"override until {override.until:%Y-%m-%dT%H:%M:%SZ}: {override.reason}", "Overridden")
    return ready("in force on every broker")
