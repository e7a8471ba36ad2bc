"""Events on a real API server, as kubectl shows them: what has become of a resource, once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from tests.kube.cluster import Kubernetes
from tests.kube.objects import quota
from tests.kube.test_operator import CLUSTER, Operated, own_topic
from tests.kube.test_pods import RUNS, begun, of_pods, say
from tests.support.control_plane import Json
from tests.support.servers import Server, start_server


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker for all tests of this file."""
    running = start_server(tmp_path_factory.mktemp("broker"))
    yield running
    running.kill()


@pytest.fixture
def operated(kubernetes: Kubernetes, broker: Server, tmp_path: Path) -> Iterator[Operated]:
    """A namespace with a KafkaCluster, and no operator yet."""
    scene = Operated(kubernetes, broker, tmp_path / "operator.log")
    assert kubernetes.create(CLUSTER).is_well
    yield scene
    scene.stop()


def events(scene: Operated, kind: str, name: str) -> list[Json]:
    """The Events of a resource, as they are stored."""
    found = json.loads(scene.kubernetes.shows("get", "events.v1.events.k8s.io", "--output", "json"))["items"]
    return [event for event in found if (event["regarding"]["kind"], event["regarding"]["name"]) == (kind, name)]


def reasons(scene: Operated, kind: str, name: str) -> list[str]:
    """The reasons of the Events of a resource, the oldest first."""
    return [event["reason"] for event in sorted(events(scene, kind, name), key=lambda event: str(event["eventTime"]))]


def test_kubectl_describes_what_has_become_of_topics_and_quotas(operated: Operated) -> None:
    place = operated.kubernetes.namespace
    orders = own_topic(operated, "orders", partitions=2, deletionPolicy="Delete", config={"retention.ms": "1000"})
    limit = quota("etl", entity={"clientId": {"name": place}})
    for resource in (orders, limit, own_topic(operated, "odd", config={"no.such": "1"})):
        assert operated.kubernetes.create(resource).is_well
    operated.start()
    operated.until_ready(("KafkaCluster", "main"), ("Topic", "orders"), ("ClientQuota", "etl"))
    operated.until(lambda: reasons(operated, "Topic", "orders") == ["TopicCreated"])
    operated.until(lambda: reasons(operated, "ClientQuota", "etl") == ["QuotaSet"])
    operated.until(lambda: reasons(operated, "Topic", "odd") == ["BadConfig"])
    spoil(operated, f"{place}-orders")
    operated.until(lambda: reasons(operated, "Topic", "orders") == ["TopicCreated", "DriftCorrected"])
    told = operated.kubernetes.shows("describe", "topics.kavka.dev", "orders").partition("\nEvents:")[2]
    assert "kavka.dev/operator" in told
    assert f'create topic "{place}-orders"' in told
    assert "retention.ms was 5" in told
    assert "DriftCorrected" in operated.kubernetes.shows("events", "--for", "topic.kavka.dev/orders")
    ours = ("--field-selector", "reportingComponent=kavka.dev/operator")
    assert "QuotaSet" in operated.kubernetes.shows("get", "events", *ours)
    assert "Warning" in operated.kubernetes.shows("describe", "topics.kavka.dev", "odd").partition("\nEvents:")[2]
    operated.until(lambda: "retention.ms was 5" in str(operated.status("Topic", "orders").get("lastCorrection")))
    operated.kubernetes.shows("delete", "topics.kavka.dev", "orders", "--wait=false")
    operated.until(lambda: reasons(operated, "Topic", "orders")[2:] == ["TopicDeleted"])


def spoil(scene: Operated, name: str) -> None:
    """Change a setting of a topic, as somebody else might."""
    admin = KafkaAdminClient(bootstrap_servers=scene.broker.bootstrap)
    try:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "5"})])
    finally:
        admin.close()


def test_an_operator_that_begins_again_says_nothing_twice(operated: Operated) -> None:
    for resource in (own_topic(operated, "orders", partitions=1), own_topic(operated, "odd", config={"no.such": "1"})):
        assert operated.kubernetes.create(resource).is_well
    operated.start()
    operated.until_ready(("KafkaCluster", "main"), ("Topic", "orders"))
    operated.until(lambda: reasons(operated, "Topic", "orders") == ["TopicCreated"])
    operated.until(lambda: reasons(operated, "Topic", "odd") == ["BadConfig"])
    operated.until(lambda: operated.condition("Topic", "odd")[0] == "False")  # an operator without a memory reads it
    operated.stop()
    operated.start()
    assert operated.kubernetes.create(own_topic(operated, "later", partitions=1)).is_well
    operated.until(lambda: reasons(operated, "Topic", "later") == ["TopicCreated"])
    assert (reasons(operated, "Topic", "orders"), reasons(operated, "Topic", "odd")) == (
        ["TopicCreated"],
        ["BadConfig"],
    )


def test_a_roll_of_pods_is_told_from_its_wait_for_an_approval_on(operated: Operated) -> None:
    operated.start()
    begun(operated, of_pods())
    say(operated, "pods-nodes-0-0", RUNS)
    operated.until(lambda: "NodeStarting" in reasons(operated, "KafkaCluster", "pods"))
    held = of_pods(config={"num.io.threads": "4"}, rollout={"hold": True})
    assert operated.kubernetes.apply(held).is_well
    operated.until(lambda: "RollWaits" in reasons(operated, "KafkaCluster", "pods"))
    assert "NodeRestarting" not in reasons(operated, "KafkaCluster", "pods")
    assert operated.kubernetes.apply(of_pods(config={"num.io.threads": "4"})).is_well
    operated.until(lambda: {"RollBegun", "NodeRestarting"} <= set(reasons(operated, "KafkaCluster", "pods")))
    told = operated.kubernetes.shows("describe", "kafkaclusters.kavka.dev", "pods").partition("\nEvents:")[2]
    assert "num.io.threads" in told
