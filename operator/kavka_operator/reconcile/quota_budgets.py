"""The parts that brokers have of a byte rate of the whole cluster: by where the traffic is (`core.quota.budget`).

Only an entity whose clients share one allowance has such parts: one that is named, not a default, since a default gives
each name its own. Where the budget is too small to keep a byte for each broker, or no broker tells its usage, the even
division stays, or the parts that there are.
"""

from collections.abc import Mapping, Sequence

from kavka_broker.core.quota.budget import KEPT, divide, step
from kavka_broker.core.quota.entity import DEFAULT, Entity, QuotaKey
from kavka_broker.core.quota.entity_limits import CLUSTER, DIVISIBLE, SHARE, share_key
from kavka_operator.api.quota import AnyEntity, ClientQuota, entity_of
from kavka_operator.domain.observed import SeenCluster, SeenUsage
from kavka_operator.domain.quota_entities import as_meant

EASE = 0.8
"""A broker whose clients ask for less than this part of its share is not short of it."""


def parts(wanted: ClientQuota, seen: SeenCluster) -> dict[str, float]:
    """The quota keys that name the resource's budgets and divide them, with their values for now.

    A budget that is divided evenly is named too: brokers then forgive no more of it than of a part.
    """
    if wanted.spec.scope != "Cluster" or wanted.spec.mode != "Enforce" or seen.is_external:
        return {}  # keys that Kavka alone knows
    limits, found = wanted.spec.limits.kafka_values(), dict[str, float]()
    for key in DIVISIBLE:
        if key in limits and int(limits[key]) >= seen.brokers_to_be:
            found |= {CLUSTER + key: limits[key]} | _divided(key, int(limits[key]), entity_of(wanted.spec.entity), seen)
    return found


def _divided(key: QuotaKey, budget: int, entity: AnyEntity, seen: SeenCluster) -> dict[str, float]:
    if not isinstance(entity, Entity) or DEFAULT in {entity.user, entity.client_id}:
        return {}
    values = seen.quotas.get(entity, {})
    usage = seen.usage.get(str(as_meant(entity, values)), ())
    return _of_key(key, budget, values, usage, sorted(seen.brokers))


def _of_key(
    key: QuotaKey, budget: int, values: Mapping[str, float], usage: Sequence[SeenUsage], brokers: Sequence[int]
) -> dict[str, float]:
    shares = _shares_now(key, values)
    if len(brokers) < 2 or int(budget * KEPT) < len(brokers) or not (usage or shares):
        return {}
    even = dict.fromkeys(brokers, budget // len(brokers))
    demand = {broker: float(shares.get(broker, 0)) * EASE for broker in brokers}
    demand |= {line.broker: _demand(key, line) for line in usage if line.broker in demand}
    following = _following(budget, shares or even, demand)
    return {share_key(broker, key): float(share) for broker, share in following.items() if share}


def _following(budget: int, shares: Mapping[int, int], demand: Mapping[int, float]) -> Mapping[int, int]:
    """The shares to set: those that there are, unless a broker is short, has come or has gone."""
    is_enough = all(demand[broker] <= EASE * shares.get(broker, 0) for broker in demand)
    if is_enough and shares.keys() == demand.keys() and sum(shares.values()) <= budget:
        return shares
    return step(budget, shares, divide(budget, demand))


def _shares_now(key: QuotaKey, values: Mapping[str, float]) -> dict[int, int]:
    found = [(SHARE.fullmatch(name), value) for name, value in values.items()]
    return {int(match[1]): int(value) for match, value in found if match is not None and match[2] == key}


def _demand(key: QuotaKey, line: SeenUsage) -> float:
    if key == QuotaKey.PRODUCER_BYTE_RATE:
        return max(line.producer_demand, line.producer_byte_rate)
    return max(line.consumer_demand, line.consumer_byte_rate)
