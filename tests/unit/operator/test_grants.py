"""Topics and quotas of other namespaces: what a KafkaCluster grants them, and what becomes of those without a grant."""

from pathlib import Path
from typing import Any

import pytest

from kavka_operator.api.kinds import cluster_key, key_of
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.stored_resources import Unreadable
from kavka_operator.api.topic import Topic
from kavka_operator.domain.plan import CreateTopic
from kavka_operator.loop.converge import converge, plan_once
from kavka_operator.loop.observation import Observation
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store
from kavka_operator.reconcile.grants import claims, refusals
from tests.unit.operator.fakes import NOW, FakeKafka, cluster, quota, topic, user
from tests.unit.operator.person import Person

REF = {"name": "main", "namespace": "default"}
GONE = {"deletionTimestamp": "2026-11-21T12:00:00Z"}


def foreign_topic(name: str = "a.orders", namespace: str = "a", day: int = 2, **parts: Any) -> Topic:
    metadata = {"namespace": namespace, "creationTimestamp": f"2026-11-{day:02}T00:00:00Z", **parts.pop("metadata", {})}
    return topic(name, metadata=metadata, clusterRef=REF, **parts)


def foreign_quota(**parts: Any) -> ClientQuota:
    return quota(metadata={"namespace": "a"}, clusterRef=REF, **parts)


def words(refused: object) -> str:
    (only,) = refused.values()  # type: ignore[attr-defined]
    assert {word.reason for word in only} == {"NotGranted"}
    return str(only[0].message)


GRANT = {"namespaces": ["a", "b"], "prefix": "a.", "maxPartitions": 10}


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        (topic(), None),
        (foreign_topic(partitions=10), None),
        (foreign_topic(partitions=11), "at most 10 partitions together, and older Topics have 0 of them"),
        (foreign_topic(), "partitions are counted; set spec.partitions"),
        (foreign_topic("orders", partitions=1), 'the name of the topic has to begin with "a."'),
        (foreign_topic("orders", topicName="a.x", partitions=1), None),
        (foreign_topic(namespace="c", partitions=1), 'allows no Topic of namespace "c"; ask its owner for a grant'),
        (foreign_quota(), 'allows no ClientQuota of namespace "a"; ask its owner for a grant'),
    ],
)
def test_a_grant_names_namespaces_kinds_a_prefix_and_a_number(resource: Topic | ClientQuota, said: str | None) -> None:
    refused = refusals(cluster(grants=[GRANT]), [resource])
    if said is None:
        assert refused == {}
    else:
        assert words(refused).startswith('spec.grants of KafkaCluster "main"')
        assert words(refused).endswith(said)


@pytest.mark.parametrize(
    ("entity", "is_granted"),
    [
        ({"clientId": {"name": "a.etl"}}, True),
        ({"user": {"name": "a.alice"}, "clientId": {"default": True}}, True),
        ({"clientId": {"name": "etl"}}, False),
        ({"user": {"default": True}}, False),
        ({"clientId": {"default": True}}, False),
    ],
)
def test_a_prefix_keeps_quotas_off_the_clients_of_others(entity: dict[str, Any], is_granted: bool) -> None:
    grants = [{"namespaces": ["a"], "kinds": ["ClientQuota"], "prefix": "a."}]
    assert (refusals(cluster(grants=grants), [foreign_quota(entity=entity)]) == {}) is is_granted


def test_one_grant_that_allows_a_resource_is_enough() -> None:
    wide = {"namespaces": ["a"], "prefix": "shared."}
    assert refusals(cluster(grants=[GRANT, wide]), [foreign_topic("shared.x")]) == {}
    assert "; or " in words(refusals(cluster(grants=[GRANT, wide]), [foreign_topic("x", partitions=1)]))


def test_partitions_of_older_topics_count_first_and_each_namespace_for_itself() -> None:
    first = foreign_topic("a.1", day=1, partitions=6)
    second = foreign_topic("a.2", day=2, partitions=6)
    third = foreign_topic("a.3", day=3, partitions=4)
    other = foreign_topic("a.4", "b", day=4, partitions=10)
    refused = refusals(cluster(grants=[GRANT]), [other, third, second, first])
    assert set(refused) == {key_of(second)}


def test_a_refused_topic_that_is_there_keeps_its_partitions_counted() -> None:
    there = foreign_topic("a.1", day=1, partitions=20, status={"partitions": 8})
    younger = foreign_topic("a.2", day=2, partitions=3)
    assert set(refusals(cluster(grants=[GRANT]), [there, younger])) == {key_of(there), key_of(younger)}


def test_a_resource_without_a_grant_does_and_owns_nothing() -> None:
    kafka = FakeKafka()
    foreign, own = foreign_topic("orders", day=1), topic("orders")
    refused = refusals(cluster(), [foreign, own])
    outcome = converge(Observation([foreign, own], NOW, refused=refused), kafka)
    assert kafka.writes == [CreateTopic("orders", None, None, {})]
    ready = [outcome.statuses[key_of(each)].condition("Ready") for each in (foreign, own)]
    assert [(found.status, found.reason) for found in ready if found] == [("False", "NotGranted"), ("True", "Ready")]
    assert outcome.statuses[key_of(foreign)].topic_id is None  # type: ignore[union-attr]
    _, plans = plan_once(Observation([foreign, own], NOW, refused=refused), kafka)
    assert [word.reason for word in plans[key_of(foreign)].words] == ["NotGranted", "NotGranted"]


def test_what_was_set_stays_where_the_grant_is_gone_before_the_resource() -> None:
    kafka = FakeKafka()
    made = foreign_topic(partitions=1, deletionPolicy="Delete")
    status = converge(Observation([made], NOW, refused=refusals(cluster(grants=[GRANT]), [made])), kafka).statuses[
        key_of(made)
    ]
    gone = foreign_topic(partitions=1, deletionPolicy="Delete", metadata=GONE, status=status.to_dict())
    outcome = converge(Observation([gone], NOW, refused=refusals(cluster(), [gone])), kafka)
    assert (outcome.released, outcome.statuses, set(kafka.topics)) == ([key_of(gone)], {}, {"a.orders"})


FILES = """
apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata: {name: main}
spec: {nodePools: [{name: nodes}], grants: [{namespaces: [team]}]}
---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {name: orders}
spec: {clusterRef: {name: main}}
---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {name: orders, namespace: team}
spec: {clusterRef: {name: main, namespace: default}, topicName: team.orders}
"""


def test_the_store_of_a_cluster_holds_resources_of_every_namespace(tmp_path: Path) -> None:
    person = Person(tmp_path)
    assert person.types("apply", "-f", person.file(FILES))[0] == 0
    store = Store(Layout.of(tmp_path / "state", "default", "main"))
    keys = [("KafkaCluster", "default", "main"), ("Topic", "default", "orders"), ("Topic", "team", "orders")]
    assert sorted(map(key_of, store.all())) == keys
    assert {cluster_key(resource) for resource in store.all()} == {keys[0]}
    assert person.types("get", "kvt", "orders", "-n", "team", "-o", "name") == (0, "topic.kavka.dev/orders\n")
    assert person.types("get", "kvt", "-A")[1].count("orders") == 2
    assert person.types("apply", "-f", person.file(FILES))[1].count("unchanged") == 3
    assert person.types("delete", "kvt", "orders", "-n", "team")[0] == 0
    marked = [each.metadata.namespace for each in store.all() if each.metadata.deletion_timestamp is not None]
    assert marked == ["team"]


def test_a_topic_that_cannot_be_read_keeps_others_from_its_name_only_where_a_grant_may_allow_it() -> None:
    found = [("default", "orders"), ("a", "a.orders"), ("a", "orders"), ("c", "a.clicks")]
    unreadable = [Unreadable(("Topic", *name), {}, "not understood") for name in found]
    unreadable.append(Unreadable(("ClientQuota", "default", "orders"), {}, "not understood"))
    assert claims(cluster(grants=[GRANT]), unreadable) == ["orders", "a.orders"]


READS = {"resource": {"type": "Topic", "name": "a.orders"}, "operations": ["Read"]}
OF_USERS = {"namespaces": ["a"], "kinds": ["KafkaUser"], "prefix": "a."}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"acls": [READS]}, None),
        ({"userName": "etl"}, 'the name of the user has to begin with "a."'),
        ({"acls": [{**READS, "resource": {"type": "Topic", "name": "*"}}]}, 'one is about Topic "*"'),
        ({"acls": [{**READS, "resource": {"type": "Group", "name": "b"}}]}, 'one is about Group "b"'),
        ({"acls": [{"resource": {"type": "Cluster"}, "operations": ["Alter"]}]}, "one is about the Cluster"),
        ({"acls": [{**READS, "resource": {"type": "Topic", "name": "b"}, "permission": "Deny"}]}, None),
    ],
)
def test_a_user_may_be_given_what_begins_as_the_grant_says(parts: dict[str, Any], said: str | None) -> None:
    foreign = user("a.etl", metadata={"namespace": "a"}, clusterRef=REF, **parts)
    refused = refusals(cluster(grants=[OF_USERS]), [foreign])
    if said is None:
        assert refused == {}
    else:
        assert words(refused).endswith(said)
    assert refusals(cluster(grants=[{**OF_USERS, "kinds": ["Topic"]}]), [foreign])
    free = {"namespaces": ["a"], "kinds": ["KafkaUser"]}
    assert refusals(cluster(grants=[free]), [foreign]) == {}
