"""What only one resource can own: a topic name, an entity, a user. Of several that claim it, the oldest owns it."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from kavka_operator.api.kinds import Managed, key_of
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.topic import Topic
from kavka_operator.api.user import KafkaUser

Claimant = TypeVar("Claimant", Topic, ClientQuota, KafkaUser)
Claims = Mapping[object, Sequence[Managed]]
"""The resources by what they claim, the oldest first; limits of users as quotas."""


def others(claim: object, resource: Managed, claims: Claims) -> list[Managed]:
    """The other resources that claim the same, the oldest first."""
    return [other for other in claims.get(claim, ()) if key_of(other) != key_of(resource)]


def owner(resource: Claimant, rivals: Sequence[Claimant]) -> Claimant | None:
    """The older resource that owns what `resource` claims, or None. A resource that is being deleted owns nothing."""
    staying = [rival for rival in rivals if rival.metadata.deletion_timestamp is None]
    return next((rival for rival in staying if rival.seniority < resource.seniority), None)
