"""What must be done so that a cluster enforces the quota that a resource wants.

Only keys that the resource names, or once set, are its own; a key that somebody set by hand on the same entity stays.
The override in force, or the next to begin, is written beside the limits with its times: brokers begin and end it,
also while nobody looks (`core.quota.entity_limits`). Limits that are to be observed have keys of their own too. A limit
of the whole cluster is divided among all brokers that there are to be, rounded down: together they never allow more,
also while one of them is away and when it is back. For byte rates that division holds until the brokers have parts by
where the traffic is (`reconcile.quota_budgets`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from kavka_broker.core.quota.entity import WHOLE_KEYS
from kavka_broker.core.quota.entity_limits import OBSERVED, OVERRIDE, OVERRIDE_FROM_MS, OVERRIDE_UNTIL_MS, PREFIX, SHARE
from kavka_operator.api.kinds import AnyResource
from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import KAFKA_KEYS, AnyEntity, ClientQuota, Override, entity_of
from kavka_operator.api.user import KafkaUser, quota_of
from kavka_operator.domain.plan import AlterQuota, KafkaPlan, Plan, Word, ready, reconciling, stalled
from kavka_operator.domain.quota_entities import entity_text

NOT_PER_BROKER = frozenset({"controller_mutation_rate"})
"""Counted by the active controller alone, so never divided."""


def reconcile(
    wanted: ClientQuota,
    seen: Mapping[str, float],
    brokers: int,
    now: datetime,
    older: ClientQuota | None = None,
    parts: Mapping[str, float] = MappingProxyType({}),
) -> KafkaPlan:
    """The plan for one quota.

    `seen` are the entity's values in Kafka; `older` claims the same entity and came first; `parts` are the brokers'
    parts of budgets (`reconcile.quota_budgets`).
    """
    entity = entity_of(wanted.spec.entity)
    if older is not None:
        return Plan(words=stalled("Conflict", f"{older.identity} limits {entity_text(entity)} too and is older"))
    target = {**target_values(wanted, brokers, now), **parts}
    to_set = {key: value for key, value in target.items() if seen.get(key) != value}
    to_remove = tuple(sorted(key for key in wanted.status.applied if key in seen and key not in target))
    if to_set or to_remove:
        action = AlterQuota(entity, to_set, to_remove)
        return Plan((action,), reconciling("Applying", str(action)))
    return Plan(words=_words_at_rest(wanted, target, brokers, now))


def retire(gone: ClientQuota, seen: Mapping[str, float], inherited: Mapping[str, float] | None = None) -> KafkaPlan:
    """The plan for a quota whose resource is deleted: take back what it has set.

    `inherited` are the limits that another resource wants for the entity; those are never away in between.
    """
    ours = tuple(sorted(key for key in gone.status.applied if key in seen and key not in (inherited or {})))
    return Plan((AlterQuota(entity_of(gone.spec.entity), {}, ours),)) if ours else Plan()


def target_values(wanted: ClientQuota, brokers: int, now: datetime) -> dict[str, float]:
    """The values that Kafka should have for the entity, for each broker, and the mark of a prefix."""
    values, client_id = _target_values(wanted, brokers, now), wanted.spec.entity.client_id
    is_prefix = client_id is not None and client_id.prefix is not None
    return {**values, PREFIX: 1.0} if values and is_prefix else values


def _target_values(wanted: ClientQuota, brokers: int, now: datetime) -> dict[str, float]:
    if wanted.spec.mode == "Observe":
        values = _divided(wanted, _wanted_values(wanted, now), brokers)
        return {OBSERVED + key: value for key, value in values.items()}
    target = _divided(wanted, wanted.spec.limits.kafka_values(), brokers)
    if (override := _override_to_set(wanted, now)) is not None:
        values = _divided(wanted, override.limits.kafka_values(), brokers)
        target |= {OVERRIDE + key: value for key, value in values.items()}
        target |= {OVERRIDE_FROM_MS: _epoch_ms(override.begin), OVERRIDE_UNTIL_MS: _epoch_ms(override.until)}
    return target


def _override_to_set(wanted: ClientQuota, now: datetime) -> Override | None:
    """The override in force, otherwise the next to begin."""
    coming = [override for override in wanted.spec.overrides if override.begin > now]
    return active_override(wanted, now) or min(coming, key=lambda override: override.begin, default=None)


def _epoch_ms(moment: datetime) -> float:
    return float(round(moment.timestamp() * 1000))


def _divided(wanted: ClientQuota, values: Mapping[str, float], brokers: int) -> dict[str, float]:
    """The values for each broker."""
    if wanted.spec.scope == "PerBroker":
        return dict(values)
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


def declared(resources: Sequence[AnyResource]) -> list[ClientQuota]:
    """The quotas that resources want, also those of users."""
    of_users = (quota_of(resource) for resource in resources if isinstance(resource, KafkaUser))
    found = [resource for resource in resources if isinstance(resource, ClientQuota)]
    return [*found, *(limits for limits in of_users if limits is not None)]


def unmanaged(seen: Mapping[AnyEntity, Mapping[str, float]], quotas: list[ClientQuota]) -> tuple[str, ...]:
    """The entities that have a quota in Kafka and no resource."""
    declared = {entity_of(quota.spec.entity) for quota in quotas}
    return tuple(sorted(entity_text(entity) for entity in seen if entity not in declared))


def _words_at_rest(wanted: ClientQuota, target: Mapping[str, float], brokers: int, now: datetime) -> tuple[Word, ...]:
    limits = _wanted_values(wanted, now)
    if small := [key for key in limits if _key_in_force(key, wanted, now) not in target]:
        fields = ", ".join(f"{KAFKA_KEYS[key]} {spell(limits[key])}" for key in small)
        words = f"{fields} is less than 1 for each of {brokers} brokers; write at least {brokers}, or scope: PerBroker"
        return stalled("TooSmallToDivide", words)
    if wanted.spec.mode == "Observe":
        return ready("observed only; nothing is limited", "Observed")
    if (override := active_override(wanted, now)) is not None:
        return ready(f"override until {override.until:%Y-%m-%dT%H:%M:%SZ}: {override.reason}", "Overridden")
    return ready(f"in force on every broker{_division(wanted, target, limits, brokers)}")


def _key_in_force(key: str, wanted: ClientQuota, now: datetime) -> str:
    """The key that has the limit now."""
    if wanted.spec.mode == "Observe":
        return OBSERVED + key
    override = active_override(wanted, now)
    return OVERRIDE + key if override is not None and key in override.limits.kafka_values() else key


def _division(wanted: ClientQuota, target: Mapping[str, float], limits: Mapping[str, float], brokers: int) -> str:
    """Words for the limit of each broker, where the limit is that of the whole cluster."""
    if wanted.spec.scope == "PerBroker" or brokers < 2:
        return ""
    shares = [_share_words(key, target, limits[key], brokers) for key in sorted(limits)]
    return f": {', '.join(shares)}"


def _share_words(key: str, target: Mapping[str, float], limit: float, brokers: int) -> str:
    found = {SHARE.fullmatch(name): value for name, value in target.items()}
    parts = {int(share[1]): value for share, value in found.items() if share is not None and share[2] == key}
    if not parts:
        return f"{key}={spell(target[key])} ({spell(limit)} / {brokers})"
    words = ", ".join(f"broker {broker}: {spell(float(f'{parts[broker]:.2g}'))}" for broker in sorted(parts))
    return f"{key}={spell(limit)} in all, {words}"
