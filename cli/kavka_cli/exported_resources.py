"""Topics, quotas and users of a Kafka as resources that, once applied, change nothing of it: pure.

Only what a topic has of its own is written, so that defaults stay the cluster's. What no resource can say is left out,
and told. A password cannot be read: a user is written as one that somebody else lets in.
"""

import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kavka_operator.api import API_VERSION
from kavka_operator.api.error_messages import DOTTED_NAME_PATTERN
from kavka_operator.api.kinds import KINDS
from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import KAFKA_KEYS, AnyEntity
from kavka_operator.api.topic import INTERNAL_TOPICS
from kavka_operator.api.validation_errors import InvalidError
from kavka_operator.domain.access_rules import Binding
from kavka_operator.domain.observed import SeenAccess, SeenTopic
from kavka_operator.domain.quota_entities import entity_text, to_wire
from kavka_operator.reconcile.reassignments import LISTS

NAME_LENGTH_MAX = 120
INTERNAL = {*INTERNAL_TOPICS, "__remote_log_metadata"}
USER_PREFIX, EVERYBODY = "User:", "*"
FIELDS = {"user": "user", "client-id": "clientId", "ip": "ip"}

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Fields that exported resources share: the KafkaCluster's name, and a namespace if one is to be written."""

    cluster: str
    namespace: str | None = None

    def resource(self, kind: str, name: str, spec: Mapping[str, Any]) -> Document:
        """A resource as a person writes it."""
        place = {} if self.namespace is None else {"namespace": self.namespace}
        return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, **place}, "spec": dict(spec)}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is not exported: what, and why."""

    what: str
    why: str


def cluster_resource(wanted: Wanted, bootstrap: str) -> Document:
    """The KafkaCluster of a Kafka that others run."""
    return wanted.resource("KafkaCluster", wanted.cluster, {"external": {"bootstrapServers": bootstrap}})


def exported_topics(wanted: Wanted, topics: Iterable[SeenTopic]) -> Iterator[Document | LeftOut]:
    """A Topic for each topic that is not Kafka's own, by name."""
    for topic in sorted(topics, key=lambda topic: topic.name):
        if topic.name not in INTERNAL:
            yield _judged(wanted.resource("Topic", name := resource_name(topic.name), _topic_spec(wanted, topic, name)))


def exported_quotas(wanted: Wanted, quotas: Mapping[AnyEntity, Mapping[str, float]]) -> Iterator[Document | LeftOut]:
    """A ClientQuota for each entity with a limit, by its words."""
    for entity, values in sorted(quotas.items(), key=lambda entry: entity_text(entry[0])):
        words = f"the quota of {entity_text(entity)}"
        if foreign := sorted(set(values) - set(KAFKA_KEYS)):
            yield LeftOut(words, f"has {foreign[0]}, which a limit alone does not say")
            continue
        if broken := [key for key, value in values.items() if key.endswith("byte_rate") and value != int(value)]:
            yield LeftOut(words, f"{broken[0]} is {values[broken[0]]!r}, and a resource has whole bytes")
            continue
        if values:
            name = resource_name("-".join(name or "default" for name in to_wire(entity).values()), repr(entity))
            yield _judged(wanted.resource("ClientQuota", name, _quota_spec(wanted, entity, values)))


def exported_users(wanted: Wanted, access: SeenAccess, owned: Collection[str] = ()) -> Iterator[Document | LeftOut]:
    """A KafkaUser for each user with access rules or a password, by name; those with a resource are `owned`."""
    rules = access.rules or {}
    for principal in sorted(set(rules) - {f"{USER_PREFIX}{name}" for name in _names(rules, access)}):
        yield LeftOut(f"the access rules of {principal}", "are of no user by name")
    for name in sorted(_names(rules, access) - set(owned)):
        if name in access.protected:
            yield LeftOut(f'user "{name}"', "is the one that asks: no resource may touch it")
            continue
        if name in access.credentials:
            yield LeftOut(f'the password of user "{name}"', "nobody can read it; it stays as it is")
        of_user = rules.get(f"{USER_PREFIX}{name}", frozenset())
        yield _judged(wanted.resource("KafkaUser", own := resource_name(name), _user_spec(wanted, name, own, of_user)))


def _names(rules: Mapping[str, Collection[Binding]], access: SeenAccess) -> set[str]:
    """The users that have access rules or a password."""
    by_rules = {principal.removeprefix(USER_PREFIX) for principal in rules if principal.startswith(USER_PREFIX)}
    return (by_rules | set(access.credentials)) - {EVERYBODY}


def _user_spec(wanted: Wanted, name: str, own: str, rules: Iterable[Binding]) -> Document:
    operations: dict[tuple[str, ...], list[str]] = {}
    for rule in sorted(rules):
        about = (rule.permission, rule.resource_type, rule.pattern_type, rule.host, rule.name)
        operations.setdefault(about, []).append(rule.operation)
    acls = [
        {
            "resource": {"type": kind, "name": resource, "patternType": pattern},
            "operations": found,
            "host": host,
            "permission": permission,
        }
        for (permission, kind, pattern, host, resource), found in operations.items()
    ]
    return {
        "clusterRef": {"name": wanted.cluster},
        **({"userName": name} if name != own else {}),
        "authentication": {"type": "external"},
        **({"acls": acls} if acls else {}),
    }


def resource_name(text: str, identity: str | None = None) -> str:
    """A name for a resource: the text where Kubernetes takes it, otherwise what is left of it and a sum of all.

    `identity` is what the sum is of, where two things may have the same text; then it is always there.
    """
    if identity is None and len(text) <= NAME_LENGTH_MAX and re.fullmatch(DOTTED_NAME_PATTERN, text):
        return text
    cleaned = (re.sub(r"[^a-z0-9]+", "-", part).strip("-") for part in text.lower().split("."))
    words = ".".join(part for part in cleaned if part)[: NAME_LENGTH_MAX - 9].strip("-.")
    return "-".join(part for part in (words, f"{zlib.crc32((identity or text).encode()):08x}") if part)


def _topic_spec(wanted: Wanted, topic: SeenTopic, name: str) -> Document:
    """The replication factor is left to what there is where partitions differ in it: it would be made the same."""
    factors = {len(replicas) for replicas in topic.assignment.values()} or {topic.replication_factor}
    config = {key: value for key, value in sorted(topic.overrides.items()) if key not in LISTS}
    return {
        "clusterRef": {"name": wanted.cluster},
        **({"topicName": topic.name} if topic.name != name else {}),
        "partitions": topic.partitions,
        **({"replicationFactor": factors.pop()} if len(factors) == 1 else {}),
        **({"config": config} if config else {}),
    }


def _quota_spec(wanted: Wanted, entity: AnyEntity, values: Mapping[str, float]) -> Document:
    parts = to_wire(entity).items()
    return {
        "clusterRef": {"name": wanted.cluster},
        "entity": {FIELDS[kind]: {"default": True} if name is None else {"name": name} for kind, name in parts},
        "limits": {
            field: spell(values[key]) if key.endswith("byte_rate") else values[key]
            for key, field in KAFKA_KEYS.items()
            if key in values
        },
    }


def _judged(document: Document) -> Document | LeftOut:
    """The document, if our own rules take it."""
    try:
        KINDS[document["kind"]].decode(document)
    except InvalidError as error:
        path, message = error.faults[0]
        identity = f"{document['kind']} {document['metadata']['name']}"
        return LeftOut(identity, f"{'.'.join(map(str, path))} {message}")
    return document
