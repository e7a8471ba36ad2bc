"""What an entity's quotas come to at a moment: its limits, an override for a while, limits that are only observed.

Beyond Kafka's keys an entity may have keys of ours in the metadata, as any quota has them: set, shown and removed by
the same requests, and ignored by Apache Kafka. KEY is one of Kafka's.

- `kavka_override_KEY` holds instead of KEY while `kavka_override_from_ms` <= now < `kavka_override_until_ms` (of the
  Unix epoch; without a beginning from the first). KEY itself stays as it is, so each broker ends the override by its
  own clock: nobody has to be there, and nothing has to be written back.
- `kavka_observed_KEY` is measured as if it were the limit, and holds nobody back.
- `kavka_prefix`, 1, makes the client id of the entity a prefix: its quotas are for all client ids that begin so, which
  share one allowance.
- `kavka_cluster_KEY` is a budget for the whole cluster, and `kavka_share_ID_KEY` the part that the broker ID has of it
  (`core.quota.budget`), instead of KEY. A broker without a part has what is left of the budget, while others have one.
"""

import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import Final

from kavka_broker.core.quota.entity import CLIENT_KEYS, IP_KEYS, WHOLE_KEYS, Entity, IpEntity, Prefix, QuotaKey

OVERRIDE: Final = "kavka_override_"
OBSERVED: Final = "kavka_observed_"
OVERRIDE_FROM_MS: Final = f"{OVERRIDE}from_ms"
OVERRIDE_UNTIL_MS: Final = f"{OVERRIDE}until_ms"
PREFIX: Final = "kavka_prefix"
CLUSTER: Final = "kavka_cluster_"
SHARE: Final = re.compile(r"kavka_share_([0-9]{1,10})_(.+)")
TIME_MS_MAX: Final = 2**53 - 1  # times travel as doubles, like limits

DIVISIBLE: Final = (QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE)
"""Those of which a budget of the whole cluster is divided by where the traffic is."""
_OF_ALL: Final = frozenset({OVERRIDE_FROM_MS, OVERRIDE_UNTIL_MS})
OWN_CLIENT_KEYS: Final = (
    _OF_ALL
    | {PREFIX}
    | {OVERRIDE + key for key in CLIENT_KEYS}
    | {OBSERVED + key for key in CLIENT_KEYS}
    | {CLUSTER + key for key in DIVISIBLE}
)
OWN_IP_KEYS: Final = _OF_ALL | {prefix + key for prefix in (OVERRIDE, OBSERVED) for key in IP_KEYS}

assert OWN_CLIENT_KEYS.isdisjoint({*CLIENT_KEYS, *IP_KEYS}), "a key of ours is Kafka's"
assert OWN_IP_KEYS.isdisjoint({*CLIENT_KEYS, *IP_KEYS}), "a key of ours is Kafka's"

AnyEntity = Entity | IpEntity
Limits = Mapping[str, Mapping[AnyEntity, float]]


def base_key(key: str) -> str:
    """Kafka's key that a key of ours is about; the key itself where it is Kafka's."""
    if (share := SHARE.fullmatch(key)) is not None:
        return share[2]
    return key.removeprefix(OVERRIDE).removeprefix(OBSERVED).removeprefix(CLUSTER)


def share_key(broker_id: int, key: str) -> str:
    """The key of the part that a broker has of a budget."""
    return f"kavka_share_{broker_id}_{key}"


def is_own(key: str, *, of_address: bool) -> bool:
    """Whether an address, or otherwise a user or client id, may have this key of ours."""
    if of_address:
        return key in OWN_IP_KEYS
    return key in OWN_CLIENT_KEYS or (SHARE.fullmatch(key) is not None and base_key(key) in DIVISIBLE)


def greatest(key: str) -> int | None:
    """The greatest value of a key of whole numbers; None for a key that takes fractions."""
    if key == PREFIX:
        return 1
    return TIME_MS_MAX if key in _OF_ALL else WHOLE_KEYS.get(base_key(key))


def in_force(limits: Limits, now_ms: int, node_id: int) -> dict[str, dict[AnyEntity, float]]:
    """The limits that hold now on this node, by Kafka's keys."""
    held = {key: dict(values) for key, values in limits.items() if key in set(QuotaKey)}
    for key in DIVISIBLE:
        for entity, budget in limits.get(CLUSTER + key, {}).items():
            if (part := _part(limits, key, entity, budget, node_id)) is not None:
                held.setdefault(key, {})[entity] = part
    overridden = {entity for entity, (begin_ms, end_ms) in _times(limits) if begin_ms <= now_ms < end_ms}
    for key in QuotaKey:
        for entity, limit in limits.get(OVERRIDE + key, {}).items():
            if entity in overridden:
                held.setdefault(key, {})[entity] = limit
    return {key: _with_prefixes(limits, values) for key, values in held.items()}


def observed(limits: Limits) -> dict[str, dict[AnyEntity, float]]:
    """The limits that are only observed, by Kafka's keys."""
    found = {key: limits[OBSERVED + key] for key in QuotaKey if OBSERVED + key in limits}
    return {key: _with_prefixes(limits, values) for key, values in found.items()}


def budgets(limits: Limits) -> dict[str, dict[AnyEntity, float]]:
    """The budgets of the whole cluster, by Kafka's keys."""
    found = {key: limits[CLUSTER + key] for key in DIVISIBLE if CLUSTER + key in limits}
    return {key: _with_prefixes(limits, values) for key, values in found.items()}


def next_change_ms(limits: Limits, now_ms: int) -> int | None:
    """When an override begins or ends next; None where none does."""
    times = [int(time_ms) for _, pair in _times(limits) for time_ms in pair if now_ms < time_ms < inf]
    return min(times, default=None)


def _part(limits: Limits, key: str, entity: AnyEntity, budget: float, node_id: int) -> float | None:
    """What this node has of a budget; None while it is not divided."""
    own = limits.get(share_key(node_id, key), {})
    if entity in own:
        return own[entity]
    shares = (share for share in limits if (found := SHARE.fullmatch(share)) is not None and found[2] == key)
    given = [limits[share][entity] for share in shares if entity in limits[share]]
    return max(budget - sum(given), 1.0) if given else None


def _with_prefixes(limits: Limits, values: Mapping[AnyEntity, float]) -> dict[AnyEntity, float]:
    """The values with the entities that are marked so made prefixes."""
    marked = limits.get(PREFIX)
    if not marked:
        return dict(values)  # which is quick for thousands: it takes the hashes over
    return {prefixed(entity) if entity in marked else entity: limit for entity, limit in values.items()}


def prefixed(entity: AnyEntity) -> AnyEntity:
    """The entity with its client id as the beginning of many, where it has one by name."""
    if isinstance(entity, Entity) and isinstance(entity.client_id, str):
        return Entity(entity.user, Prefix.of(entity.client_id))
    return entity


def _times(limits: Limits) -> Iterator[tuple[AnyEntity, tuple[float, float]]]:
    """The entities whose overrides have an end, with their beginnings and ends."""
    begins = limits.get(OVERRIDE_FROM_MS, {})
    for entity, end_ms in limits.get(OVERRIDE_UNTIL_MS, {}).items():
        yield entity, (begins.get(entity, 0.0), end_ms)
