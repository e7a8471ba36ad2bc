"""Which resources of other namespaces a KafkaCluster takes: those that one of its grants allows.

A resource in the cluster's own namespace needs no grant. One that has none does nothing, and owns nothing: a topic that
another resource declares too is that one's alone.
"""

from collections import Counter
from collections.abc import Sequence

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.grants import Grant
from kavka_operator.api.kinds import Key, Managed, key_of
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.stored_resources import Unreadable
from kavka_operator.api.topic import Topic
from kavka_operator.api.user import KafkaUser
from kavka_operator.domain.plan import Word, stalled


def refusals(cluster: KafkaCluster, resources: Sequence[Managed]) -> dict[Key, tuple[Word, ...]]:
    """Words for each resource that no grant of the cluster allows. The partitions of older resources count first."""
    used: Counter[str] = Counter()
    refused: dict[Key, tuple[Word, ...]] = {}
    for resource in sorted(resources, key=lambda resource: resource.seniority):
        namespace = resource.metadata.namespace
        if namespace == cluster.metadata.namespace:
            continue
        fault = _fault(cluster, resource, used[namespace])
        if fault is not None:
            refused[key_of(resource)] = stalled("NotGranted", fault)
        used[namespace] += _partitions(resource, is_granted=fault is None)
    return refused


def claims(cluster: KafkaCluster, unreadable: Sequence[Unreadable]) -> list[str]:
    """The topics that unreadable resources name, of those that a grant may allow: nobody deletes them meanwhile."""
    return [
        name
        for unread in unreadable
        if (name := unread.topic_name) is not None and _may_claim(cluster, unread.key[1], name)
    ]


def _may_claim(cluster: KafkaCluster, namespace: str, topic: str) -> bool:
    grants = [grant for grant in cluster.spec.grants if namespace in grant.namespaces and "Topic" in grant.kinds]
    is_granted = any(topic.startswith(grant.prefix or "") for grant in grants)
    return namespace == cluster.metadata.namespace or is_granted


def _partitions(resource: Managed, *, is_granted: bool) -> int:
    """The partitions that a resource takes of its namespace's: those there are, and those it may add."""
    if not isinstance(resource, Topic):
        return 0
    return max(resource.status.partitions or 0, (resource.spec.partitions or 0) if is_granted else 0)


def _fault(cluster: KafkaCluster, resource: Managed, used: int) -> str | None:
    """The fault for which no grant allows the resource; None if one allows it."""
    namespace, where = resource.metadata.namespace, f"spec.grants of {cluster.identity}"
    grants = [grant for grant in cluster.spec.grants if namespace in grant.namespaces and resource.kind in grant.kinds]
    if not grants:
        return f'{where} allows no {resource.kind} of namespace "{namespace}"; ask its owner for a grant'
    faults = [_against(grant, resource, used) for grant in grants]
    return None if None in faults else f"{where}: " + "; or ".join(fault for fault in faults if fault is not None)


def _against(grant: Grant, resource: Managed, used: int) -> str | None:
    """The fault for which the grant does not allow a resource of a kind and a namespace that it allows."""
    match resource:
        case ClientQuota():
            return _entity_fault(grant, resource)
        case KafkaUser():
            return _user_fault(grant, resource)
        case Topic():
            return _topic_fault(grant, resource, used)


def _topic_fault(grant: Grant, resource: Topic, used: int) -> str | None:
    if not resource.topic_name.startswith(grant.prefix or ""):
        return f'the name of the topic has to begin with "{grant.prefix}"'
    if grant.max_partitions is None:
        return None
    if resource.spec.partitions is None:
        return "partitions are counted; set spec.partitions"
    if used + max(resource.spec.partitions, resource.status.partitions or 0) > grant.max_partitions:
        return f"at most {grant.max_partitions} partitions together, and older Topics have {used} of them"
    return None


def _entity_fault(grant: Grant, quota: ClientQuota) -> str | None:
    """The fault of the entity: where the grant has a prefix, it has to name a user or a client id with that prefix."""
    entity = quota.spec.entity
    user, client = entity.user, entity.client_id
    names = [user.name if user else None, (client.name or client.prefix) if client else None]
    if grant.prefix is None or any(name.startswith(grant.prefix) for name in names if name is not None):
        return None
    return f'the entity has to name a user or a client id that begins with "{grant.prefix}"'


def _user_fault(grant: Grant, user: KafkaUser) -> str | None:
    """The fault of a user: where the grant has a prefix, its name and all that its rules allow have to begin with it.

    What a rule denies to the user itself is nobody else's.
    """
    if grant.prefix is None:
        return None
    if not user.user_name.startswith(grant.prefix):
        return f'the name of the user has to begin with "{grant.prefix}"'
    named = [acl.resource for acl in user.spec.acls if acl.permission == "Allow"]
    foreign = next((found for found in named if not (found.name or "").startswith(grant.prefix)), None)
    if foreign is None:
        return None
    what = f'{foreign.type} "{foreign.name}"' if foreign.name is not None else f"the {foreign.type}"
    return f'access rules have to be about names that begin with "{grant.prefix}", and one is about {what}'
