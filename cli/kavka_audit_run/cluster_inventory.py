"""The cluster as the audit analytics compare the trail with it: brokers, topics with their sizes, and access rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import kafka.errors
from kafka.admin import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafka.protocol.admin import DescribeAclsRequest

from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain.observed import SeenPartition
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.audit_topic import NO_TOPIC, TOPIC
from kavka_operator.kafka.client import TOPIC_RESOURCE
from kavka_operator.kafka.errors import in_words, raise_for
from kavka_operator.kafka.offsets_and_lag import Members, Onlooker
from kavka_operator.kafka.record_counts import EARLIEST
from kavka_operator.kafka.topic_ids import text_of

ANY = 1
Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Accounted:
    """A cluster at one moment: rows by table, and the words for what it did not tell."""

    cluster_id: str
    topic_id: str  # of the audit topic
    tables: Mapping[str, Rows]
    quotas: Mapping[AnyEntity, Mapping[str, float]] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    untold: list[str] = field(default_factory=list)


class Accountant(Onlooker):
    """A client that asks what is there to be used."""

    def account(self) -> Accounted:
        """The cluster. Raises AdminError where it does not tell even its brokers and topics, or keeps no trail."""
        members = self.members()
        with in_words("describe the topics"):
            told = {topic.name: topic for topic in self._metadata().topics if not topic.error_code}
        if TOPIC not in told:
            raise AdminError(NO_TOPIC)
        untold: list[str] = []
        sizes = self._sizes(members, untold)
        tables: dict[str, Rows] = {
            "brokers": [{"node": node} for node in sorted(members.brokers)],
            "topics": [_topic(topic, sizes) for topic in told.values()],
            "partitions": self._partitions(members.partitions, untold),
            "grants": self._grants(untold),
        }
        topic_ids = {name: text_of(topic.topic_id) for name, topic in told.items()}
        return Accounted(members.cluster_id, topic_ids[TOPIC], tables, self._limits(untold), topic_ids, untold)

    def is_compacted(self, topic: str) -> bool:
        """Whether records of a topic are deleted one by one. Raises AdminError."""
        with in_words(f'describe topic "{topic}"'):
            found = self._configs(TOPIC_RESOURCE, [topic], "cleanup.policy")[topic]
            return any("compact" in (setting.value or "") for setting in found)

    def _limits(self, untold: list[str]) -> Mapping[AnyEntity, Mapping[str, float]]:
        try:
            return self.quotas()
        except AdminError as error:
            untold.append(f"its quotas: {error}")
            return {}

    def _sizes(self, members: Members, untold: list[str]) -> dict[str, int] | None:
        """The bytes of each topic, with all of its replicas; None where a broker does not tell."""
        sizes: dict[str, int] = {}
        for broker in sorted(members.brokers):
            try:
                for (topic, _), size in self.log_dirs(broker).sizes.items():
                    sizes[topic] = sizes.get(topic, 0) + size
            except AdminError as error:
                untold.append(f"the sizes of topics: {error}")
                return None
        return sizes

    def _partitions(self, partitions: Sequence[SeenPartition], untold: list[str]) -> Rows:
        try:
            begins, ends = self.ends(partitions, EARLIEST), self.ends(partitions)
        except AdminError as error:
            untold.append(f"the records of partitions: {error}")
            return ()
        return [
            {
                "topic": found.topic,
                "partition": found.index,
                "leader": found.leader,
                "records": ends[found.key] - begins[found.key],
            }
            for found in partitions
            if found.key in ends and found.key in begins
        ]

    def _grants(self, untold: list[str]) -> Rows:
        request = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        try:
            with in_words("describe the access rules"):
                answer = self._send(request)
                if answer.error_code == kafka.errors.SecurityDisabledError.errno:
                    return ()  # no authorizer, no rules
                raise_for(answer.error_code, answer.error_message)
        except AdminError as error:
            untold.append(f"its access rules: {error}")
            return ()
        return [_grant(resource, rule) for resource in answer.resources for rule in resource.acls]


def _topic(topic: Any, sizes: Mapping[str, int] | None) -> dict[str, object]:
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "bytes": None if sizes is None else sizes.get(topic.name, 0),
        "is_internal": topic.is_internal,
    }


def _grant(resource: Any, rule: Any) -> dict[str, object]:
    return {
        "principal": rule.principal,
        "host": rule.host,
        "operation": ACLOperation(rule.operation).name,
        "resource_type": ResourceType(resource.resource_type).name.lower(),
        "pattern_type": ACLResourcePatternType(resource.pattern_type).name,
        "resource": resource.resource_name,
        "permission": ACLPermissionType(rule.permission_type).name,
    }
