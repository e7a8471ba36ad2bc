"""The kinds there are, and every name that a person may call them by."""

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.resource import Resource
from kavka_operator.api.topic import Topic
from kavka_operator.api.user import KafkaUser

AnyKind = type[KafkaCluster] | type[Topic] | type[ClientQuota] | type[KafkaUser]

KINDS: dict[str, AnyKind] = {kind.kind_name: kind for kind in (KafkaCluster, Topic, ClientQuota, KafkaUser)}
"""In the order in which they are applied: what others point at comes first."""

Key = tuple[str, str, str]
"""Kind, namespace, name: what there is once."""

Managed = Topic | ClientQuota | KafkaUser
"""A resource that is about something in Kafka, not about its nodes."""

AnyResource = KafkaCluster | Managed


def key_of(resource: Resource) -> Key:
    """The key of a resource."""
    return resource.kind_name, resource.metadata.namespace, resource.metadata.name


def cluster_key(resource: AnyResource) -> Key:
    """The key of the KafkaCluster that a resource belongs to; of a KafkaCluster, its own."""
    if isinstance(resource, KafkaCluster):
        return key_of(resource)
    ref = resource.spec.cluster_ref
    return KafkaCluster.kind_name, ref.namespace or resource.metadata.namespace, ref.name


def names_of(kind: type[Resource]) -> tuple[str, ...]:
    """Names that `kavka get` accepts for this kind."""
    return kind.kind_name.lower(), kind.plural, kind.short_name


def find_kind(text: str) -> AnyKind | None:
    """The kind that `text` names, as kind, plural or short name in any case; None if there is none."""
    wanted = text.lower()
    return next((kind for kind in KINDS.values() if wanted in names_of(kind)), None)
