"""Limits that hold the operator itself: told, as a person who sets them rarely thinks of it. Pure.

Nodes are out of it: brokers charge what followers fetch to no client, and a resource that names their user is refused.
The operator is a client as any other. What it asks is little, except that it creates topics and partitions: a small
`controllerMutationRate` or `requestPercentage` for everybody makes it wait, and every Topic with it.
"""

from collections.abc import Mapping

from kavka_broker.core.quota.resolve import candidates
from kavka_operator.api.quota import INTERNAL_USERS, KAFKA_KEYS, AnyEntity, ClientQuota, entity_of
from kavka_operator.domain.plan import Word
from kavka_operator.quota.shadows import Limits

ANONYMOUS = "ANONYMOUS"
CLIENT_ID = "kavka-operator"
FELT = ("controller_mutation_rate", "request_percentage")


def internal_words(quota: ClientQuota, limits: Limits, *, knows_users: bool = False) -> list[Word]:
    """The condition of a quota that holds the operator. `knows_users` where listeners ask who clients are."""
    entity = entity_of(quota.spec.entity)
    user = INTERNAL_USERS[-1] if knows_users else ANONYMOUS
    felt = [key for key in FELT if key in limits.get(entity, {}) and _winner(key, user, limits) == entity]
    if not felt:
        return []
    names = " and ".join(_field(quota, key) for key in felt)
    own = f"{{clientId: {{name: {CLIENT_ID}}}, user: {{name: {ANONYMOUS}}}}}"
    advice = "" if knows_users else f"; a ClientQuota with entity {own} gives it one of its own"
    return [Word("HoldsOperator", "True", "SharedLimit", f"{names} of {quota.identity} holds the operator too{advice}")]


def _field(quota: ClientQuota, key: str) -> str:
    """The field that sets a limit; where another has set it in Kafka beside ours, the limit's name alone."""
    name = KAFKA_KEYS[key]
    return f"spec.limits.{name}" if key in quota.spec.limits.kafka_values() else name


def _winner(key: str, user: str, limits: Mapping[AnyEntity, Mapping[str, float]]) -> AnyEntity | None:
    """The entity whose limit applies to the operator."""
    return next((found for found in candidates(user, CLIENT_ID) if key in limits.get(found, {})), None)
