"""What `kavka export` writes of topics, quotas and users, and what it leaves out."""

import re

from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity
from kavka_cli.exported_resources import (
    NAME_LENGTH_MAX,
    LeftOut,
    Wanted,
    cluster_resource,
    exported_quotas,
    exported_topics,
    exported_users,
    resource_name,
)
from kavka_operator.api.error_messages import DOTTED_NAME_PATTERN
from kavka_operator.api.kinds import KINDS
from kavka_operator.api.quota import AnyEntity, ClientQuota, entity_of
from kavka_operator.api.topic import TOPIC_NAME_PATTERN, Topic
from kavka_operator.api.user import KafkaUser
from kavka_operator.domain.access_rules import Binding, declared
from kavka_operator.domain.observed import SeenAccess, SeenTopic

MAIN = Wanted("main")
NAMES = st.from_regex(TOPIC_NAME_PATTERN, fullmatch=True).map(lambda name: name[:249])
PARTS = st.none() | st.just(DEFAULT) | st.text(min_size=1, max_size=40)


def seen(name: str, **others: object) -> SeenTopic:
    return SeenTopic(name, "id", 3, 2, **others)  # type: ignore[arg-type]


def test_a_topic_is_written_with_what_is_its_own() -> None:
    lists = {"leader.replication.throttled.replicas": "0:1"}
    orders = seen("orders", overrides={"retention.ms": "1", **lists}, values={"retention.ms": "1", "segment.ms": "2"})
    (found,) = exported_topics(MAIN, [seen("__consumer_offsets"), seen("__audit_events"), orders])
    assert found == {
        "apiVersion": "kavka.dev/v1alpha1",
        "kind": "Topic",
        "metadata": {"name": "orders"},
        "spec": {
            "clusterRef": {"name": "main"},
            "partitions": 3,
            "replicationFactor": 2,
            "config": {"retention.ms": "1"},
        },
    }


def test_partitions_that_differ_in_replicas_are_not_made_the_same() -> None:
    (found,) = exported_topics(MAIN, [seen("t", assignment={0: (1, 2), 1: (1,)})])
    assert isinstance(found, dict)
    assert "replicationFactor" not in found["spec"]


def test_a_namespace_is_written_where_it_was_named() -> None:
    made = cluster_resource(Wanted("main", "kafka"), "a:9092")
    assert made["metadata"] == {"name": "main", "namespace": "kafka"}
    assert KINDS["KafkaCluster"].decode(made).name == "main"


def test_what_no_resource_can_say_is_left_out_and_told() -> None:
    quotas: dict[AnyEntity, dict[str, float]] = {
        Entity("a", None): {"producer_byte_rate": 0.5},
        Entity("b", None): {"kavka_prefix": 1.0, "producer_byte_rate": 1.0},
        Entity("c", None): {},
        IpEntity("example.com"): {"connection_creation_rate": 1.0},
    }
    found = list(exported_quotas(MAIN, quotas))
    assert [type(part) for part in found] == [LeftOut] * 3
    assert [part.why.split()[0] for part in found if isinstance(part, LeftOut)] == [
        "spec.entity.ip.name",
        "producer_byte_rate",
        "has",
    ]


@given(st.lists(NAMES, unique=True, max_size=5))
def test_every_topic_keeps_its_name_in_kafka(names: list[str]) -> None:
    found = [part for part in exported_topics(MAIN, map(seen, names)) if isinstance(part, dict)]
    topics = [KINDS["Topic"].decode(document) for document in found]
    assert [topic.topic_name for topic in topics if isinstance(topic, Topic)] == sorted(set(names) - {".", ".."})
    assert len({document["metadata"]["name"] for document in found}) == len(found)


@given(PARTS, PARTS)
def test_every_entity_comes_back_from_its_resource(user: str | None, client_id: str | None) -> None:
    if user is None and client_id is None:
        return
    entity = Entity(user, client_id)
    (found,) = exported_quotas(MAIN, {entity: {"producer_byte_rate": 5.0, "request_percentage": 0.5}})
    assert isinstance(found, dict)
    quota = KINDS["ClientQuota"].decode(found)
    assert isinstance(quota, ClientQuota)
    assert entity_of(quota.spec.entity) == entity
    assert quota.spec.limits.kafka_values() == {"producer_byte_rate": 5.0, "request_percentage": 0.5}


@given(st.text(max_size=300), st.none() | st.text(max_size=9))
def test_every_name_is_one_that_kubernetes_takes(text: str, identity: str | None) -> None:
    name = resource_name(text, identity)
    assert re.fullmatch(DOTTED_NAME_PATTERN, name)
    assert len(name) <= NAME_LENGTH_MAX


RULES = (
    Binding("Allow", "Read", "Topic", "Literal", "*", "orders"),
    Binding("Allow", "Write", "Topic", "Literal", "*", "orders"),
    Binding("Deny", "All", "Cluster", "Literal", "10.0.0.1", "kafka-cluster"),
    Binding("Allow", "Read", "Group", "Prefixed", "*", "a b"),
)


def test_a_user_keeps_its_rules_and_its_name_and_gets_no_password() -> None:
    access = SeenAccess(
        rules={"User:CN=a,O=b": frozenset(RULES), "User:*": frozenset(RULES), "Group:x": frozenset(RULES)},
        credentials={"carol": {"SCRAM-SHA-512": 4096}, "root": {}, "known": {}},
        protected=frozenset({"root"}),
    )
    found = list(exported_users(MAIN, access, {"known"}))
    users = [KINDS["KafkaUser"].decode(part) for part in found if isinstance(part, dict)]
    assert all(isinstance(each, KafkaUser) for each in users)
    by_name = {each.user_name: each for each in users if isinstance(each, KafkaUser)}
    assert set(by_name) == {"CN=a,O=b", "carol"}
    assert declared(by_name["CN=a,O=b"]) == set(RULES)
    assert {each.spec.authentication.type for each in by_name.values()} == {"external"}
    left = [part.what for part in found if isinstance(part, LeftOut)]
    assert left == [
        "the access rules of Group:x",
        "the access rules of User:*",
        'the password of user "carol"',
        'user "root"',
    ]
