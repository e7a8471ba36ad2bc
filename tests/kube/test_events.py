"""Events on a real API server, as kubectl shows them: what has become of a resource, once."""

import json

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from tests.kube.objects import quota
from tests.kube.operated import Operated, own_topic
from tests.kube.test_pods import RUNS, begun, of_pods, say
from tests.support.control_plane import Json


def events(scene: Operated, kind: str, name: str) -> list[Json]:
    """The Events of a resource, as they are stored."""
    found = json.loads(scene.kubernetes.shows("get", "events.v1.events.k8s.io", "--output", "json"))["items"]
    return [event for event in found if (event["regarding"]["kind"], event["regarding"]["name"]) == (kind, name)]


def reasons(scene: Operated, kind: str, name: str) -> list[str]:
    """The reasons of the Events of a resource, the oldest first."""
    return [event["reason"] for event in sorted(events(scene, kind, name), key=lambda event: str(event["eventTime"]))]


def test_kubectl_describes_what_has_become_of_topics_and_quotas(declared: Operated) -> None:
    place = declared.kubernetes.namespace
    orders = own_topic(declared, "orders", partitions=2, deletionPolicy="Delete", config={"retention.ms": "1000"})
    limit = quota("etl", entity={"clientId": {"name": place}})
    for resource in (orders, limit, own_topic(declared, "odd", config={"no.such": "1"})):
        assert declared.kubernetes.create(resource).is_well
    declared.start()
    declared.until_ready(("KafkaCluster", "main"), ("Topic", "orders"), ("ClientQuota", "etl"))
    declared.until(lambda: reasons(declared, "Topic", "orders") == ["TopicCreated"])
    declared.until(lambda: reasons(declared, "ClientQuota", "etl") == ["QuotaSet"])
    declared.until(lambda: reasons(declared, "Topic", "odd") == ["BadConfig"])
    spoil(declared, f"{place}-orders")
    declared.until(lambda: reasons(declared, "Topic", "orders") == ["TopicCreated", "DriftCorrected"])
    told = declared.kubernetes.shows("describe", "topics.kavka.dev", "orders").partition("\nEvents:")[2]
    assert "kavka.dev/operator" in told
    assert f'create topic "{place}-orders"' in told
    assert "retention.ms was 5" in told
    assert "DriftCorrected" in declared.kubernetes.shows("events", "--for", "topic.kavka.dev/orders")
    ours = ("--field-selector", "reportingComponent=kavka.dev/operator")
    assert "QuotaSet" in declared.kubernetes.shows("get", "events", *ours)
    assert "Warning" in declared.kubernetes.shows("describe", "topics.kavka.dev", "odd").partition("\nEvents:")[2]
    assert "retention.ms was 5" in declared.status("Topic", "orders")["lastCorrection"]["message"]
    declared.kubernetes.shows("delete", "topics.kavka.dev", "orders", "--wait=false")
    declared.until(lambda: reasons(declared, "Topic", "orders")[2:] == ["TopicDeleted"])


def spoil(scene: Operated, name: str) -> None:
    """Change a setting of a topic, as somebody else might."""
    admin = KafkaAdminClient(bootstrap_servers=scene.broker.bootstrap)
    try:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "5"})])
    finally:
        admin.close()


def test_an_operator_that_begins_again_says_nothing_twice(declared: Operated) -> None:
    for resource in (own_topic(declared, "orders", partitions=1), own_topic(declared, "odd", config={"no.such": "1"})):
        assert declared.kubernetes.create(resource).is_well
    declared.start()
    declared.until_ready(("KafkaCluster", "main"), ("Topic", "orders"))
    declared.until(lambda: reasons(declared, "Topic", "odd") == ["BadConfig"])
    declared.stop()
    declared.start()
    assert declared.kubernetes.create(own_topic(declared, "later", partitions=1)).is_well
    declared.until(lambda: reasons(declared, "Topic", "later") == ["TopicCreated"])
    assert (reasons(declared, "Topic", "orders"), reasons(declared, "Topic", "odd")) == (
        ["TopicCreated"],
        ["BadConfig"],
    )


def test_a_roll_of_pods_is_told_from_its_wait_for_an_approval_on(declared: Operated) -> None:
    declared.start()
    begun(declared, of_pods())
    say(declared, "pods-nodes-0-0", RUNS)
    declared.until(lambda: "NodeStarting" in reasons(declared, "KafkaCluster", "pods"))
    held = of_pods(config={"num.io.threads": "4"}, rollout={"hold": True})
    assert declared.kubernetes.apply(held).is_well
    declared.until(lambda: "RollWaits" in reasons(declared, "KafkaCluster", "pods"))
    assert "NodeRestarting" not in reasons(declared, "KafkaCluster", "pods")
    assert declared.kubernetes.apply(of_pods(config={"num.io.threads": "4"})).is_well
    declared.until(lambda: {"RollBegun", "NodeRestarting"} <= set(reasons(declared, "KafkaCluster", "pods")))
    told = declared.kubernetes.shows("describe", "kafkaclusters.kavka.dev", "pods").partition("\nEvents:")[2]
    assert "num.io.threads" in told
