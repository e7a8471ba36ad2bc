"""The module of each kind. A new kind is a module and a line here."""

from collections.abc import Iterable
from typing import Any, Final

from kavka_operator.api.kinds import Managed
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.topic import Topic
from kavka_operator.api.user import KafkaUser
from kavka_operator.loop.kinds import quota, topic, user
from kavka_operator.loop.kinds.kind import Kind

TOPIC: Final[Kind[Topic]] = topic
QUOTA: Final[Kind[ClientQuota]] = quota
USER: Final[Kind[KafkaUser]] = user
KINDS: Final[dict[type, Kind[Any]]] = {Topic: TOPIC, ClientQuota: QUOTA, KafkaUser: USER}


def kind_of(resource: Managed) -> Kind[Any]:
    """The module of a resource's kind."""
    return KINDS[type(resource)]


def claims_of(resources: Iterable[Managed]) -> dict[object, list[Managed]]:
    """The resources that claim each topic name, entity or user, the oldest first; limits of users as quotas."""
    claims: dict[object, list[Managed]] = {}
    for resource in sorted(resources, key=lambda resource: resource.seniority):
        kind = kind_of(resource)
        same = claims.setdefault(kind.claim(resource), [])
        same.append(resource)
        if same[0] is resource and (limits := kind.limits(resource)) is not None:
            claims.setdefault(QUOTA.claim(limits), []).append(limits)
    return claims
