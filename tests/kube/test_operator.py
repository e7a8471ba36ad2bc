"""The operator's process against a real API server and a real broker: from resources to Kafka and back.

The broker runs all the time; what is judged is the operator: what it makes, what it says, that it rests, that it may
die after any write, and that nothing hangs when everything goes.
"""

import json
import os
import re
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka.admin import KafkaAdminClient

from tests.kube import forks
from tests.kube.cluster import Kubernetes, verdict
from tests.kube.objects import cluster, pool, quota, topic
from tests.kube.operating import DIED
from tests.support.control_plane import Json
from tests.support.drawn import in_turn
from tests.support.nodes import Nodes
from tests.support.servers import Server, free_port, start_server
from tests.support.waiting import until_outside

SECONDS_MAX = 120.0
MONITORING = Path(__file__).parents[2] / "examples/monitoring/operator"
OVERRIDE_SECONDS = 10
LONG_AGO = "2026-11-01T00:00:00Z"
CLUSTER = cluster("main", nodePools=[pool("nodes", replicas=1)])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker for all tests of this file."""
    running = start_server(tmp_path_factory.mktemp("broker"))
    yield running
    running.kill()


@dataclass(slots=True)
class Operated:
    """A namespace, the broker behind it, and the operator that watches the one for the other."""

    kubernetes: Kubernetes
    broker: Server | Nodes
    log: Path
    running: forks.Operator | None = field(default=None)

    def start(self, last: int | None = None, **others: str) -> None:
        """Start the operator, with other settings; with `last` it dies after so many writes."""
        settings = {
            **os.environ,
            "KUBECONFIG": str(self.kubernetes.plane.kubeconfig),
            "KAVKA_WATCH_NAMESPACES": self.kubernetes.namespace,
            **others,
        }
        self.running = forks.start([self.broker.bootstrap, *([str(last)] if last else [])], settings, self.log)

    def stop(self) -> None:
        """Kill the operator, wherever it is."""
        if self.running is not None:
            self.running.kill()
            self.running.wait(SECONDS_MAX)

    def writes(self) -> list[str]:
        """What the operator has written so far, in all of its lives."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return [line.partition(": ")[2] for line in lines if line.startswith("write ")]

    def at_rest(self) -> list[str]:
        """Wait until the operator has looked twice and written nothing meanwhile: what it has written until then. What
        the API server shows may be told later, and a KafkaCluster tells of its topics with the next look.
        """

        def looks() -> int:
            return self.log.read_text(errors="replace").count("asked DescribeClientQuotasRequest")

        def is_at_rest() -> bool:
            written, first = self.writes(), looks()
            self.until(lambda: looks() >= first + 2)
            return self.writes() == written

        self.until(is_at_rest)
        return self.writes()

    def status(self, kind: str, name: str) -> Json:
        """What is said of a resource."""
        found: Json = self.kubernetes.get(kind, name).get("status", {})
        return found

    def condition(self, kind: str, name: str, wanted: str = "Ready") -> tuple[str, str]:
        """Status and reason of a condition; empty where it is not there."""
        for condition in self.status(kind, name).get("conditions", []):
            if condition["type"] == wanted:
                return condition["status"], condition["reason"]
        return "", ""

    def until(self, holds: Callable[[], object]) -> None:
        """Wait for something to hold; a failure shows the operator's log."""
        try:
            until_outside(holds, SECONDS_MAX)
        except AssertionError as error:
            stands = self.kubernetes.kubectl("get", "kavka", "--output", "wide").stdout
            pytest.fail(f"{error}\n{stands}\n{self.log.read_text(errors='replace')[-4000:]}")

    def until_ready(self, *keys: tuple[str, str]) -> None:
        """Wait until resources are ready."""
        for key in keys:
            self.until(lambda key=key: self.condition(*key) == ("True", "Ready"))  # type: ignore[misc]

    def is_gone(self, kind: str, name: str) -> bool:
        """Whether the API server has no such resource."""
        return self.kubernetes.api.call("GET", self.kubernetes.path(kind, name)).status == 404

    def topics(self) -> set[str]:
        """The topics of the broker."""
        admin = KafkaAdminClient(bootstrap_servers=self.broker.bootstrap)
        try:
            return set(admin.list_topics())
        finally:
            admin.close()


@pytest.fixture
def operated(kubernetes: Kubernetes, broker: Server, tmp_path: Path) -> Iterator[Operated]:
    """A namespace with a KafkaCluster, and no operator yet."""
    scene = Operated(kubernetes, broker, tmp_path / "operator.log")
    assert kubernetes.create(CLUSTER).is_well
    yield scene
    scene.stop()


def own_topic(scene: Operated, name: str, **spec: Any) -> Json:
    """A Topic whose topic is its test's own, as the broker serves all of them."""
    return topic(name, topicName=f"{scene.kubernetes.namespace}-{name}", **spec)


def test_resources_become_topics_and_quotas_and_their_statuses_rest(operated: Operated) -> None:
    orders = own_topic(operated, "orders", partitions=3, deletionPolicy="Delete")
    assert operated.kubernetes.create(orders).is_well
    assert operated.kubernetes.create(
        quota("clicks", entity={"clientId": {"name": operated.kubernetes.namespace}})
    ).is_well
    operated.start()
    operated.until_ready(("KafkaCluster", "main"), ("Topic", "orders"), ("ClientQuota", "clicks"))
    assert orders["spec"]["topicName"] in operated.topics()
    assert operated.status("Topic", "orders")["partitions"] == 3
    assert [verdict(operated.kubernetes.get(*key)) for key in (("KafkaCluster", "main"), ("Topic", "orders"))] == [
        "Current",
        "Current",
    ]
    before = operated.at_rest()
    operated.stop()
    operated.start()  # another look at everything, from the start
    assert operated.kubernetes.create(own_topic(operated, "other", partitions=1)).is_well
    operated.until_ready(("Topic", "other"))
    later = {words for words in operated.writes()[len(before) :] if "other" not in words}
    assert later <= {"KafkaCluster main status"}, "which tells of the new topic's leader"


def test_kubectl_scales_a_topic_and_finds_those_of_a_cluster(operated: Operated) -> None:
    assert operated.kubernetes.create(own_topic(operated, "orders", partitions=2)).is_well
    assert operated.kubernetes.create(own_topic(operated, "far", clusterRef={"name": "other"})).is_well
    operated.start()
    operated.until_ready(("Topic", "orders"))
    operated.kubernetes.shows("scale", "topics.kavka.dev/orders", "--current-replicas=2", "--replicas=5")
    operated.until(lambda: operated.status("Topic", "orders").get("partitions") == 5)
    found = ("get", "topics.kavka.dev", "--output", "name", "--field-selector")
    assert operated.kubernetes.shows(*found, "spec.clusterRef.name=main").split() == ["topic.kavka.dev/orders"]
    assert operated.kubernetes.shows(*found, "spec.clusterRef.name=other").split() == ["topic.kavka.dev/far"]


def test_its_page_has_every_series_that_rules_and_the_dashboard_name(operated: Operated) -> None:
    port, people = free_port(), free_port()
    assert operated.kubernetes.create(own_topic(operated, "orders", partitions=3)).is_well
    assert operated.kubernetes.create(own_topic(operated, "many", replicationFactor=3)).is_well
    operated.start(KAVKA_LISTEN=f"127.0.0.1:{port}", KAVKA_CONSOLE=f"127.0.0.1:{people}")
    operated.until_ready(("KafkaCluster", "main"), ("Topic", "orders"))
    operated.until(lambda: operated.condition("Topic", "many")[0] == "False")
    operated.until(lambda: answered(port, "/healthz") == answered(port, "/readyz") == "ok\n")
    assert "<title>Kavka</title>" in answered(people, "/")
    operated.until(lambda: '"many"' in answered(people, "/console.json"))
    shown = json.loads(answered(people, "/console.json"))
    assert [(found["name"], found["topics"]) for found in shown["clusters"]] == [("main", 2)]
    assert {(found["name"], found["partitions"]) for found in shown["topics"]} >= {("orders", 3)}
    assert answered(port, "/") == answered(people, "/metrics") == ""
    late = 'kavka_operator_not_ready_timestamp_seconds{kind="Topic",name="many",'
    operated.until(lambda: late in answered(port, "/metrics"))
    page = answered(port, "/metrics")
    assert 'kavka_operator_writes_total{to="kafka",what="CreateTopic"} 1.0' in page
    assert 'kavka_operator_writes_total{to="kubernetes",what="topics/status"}' in page
    assert "kavka_operator_active 1.0" in page
    named = {name for path in MONITORING.iterdir() for name in re.findall(r"kavka_operator_\w+", path.read_text())}
    only_when = {"look_failures_total", "roll_nodes", "roll_nodes_done", "roll_blocked_timestamp_seconds"}
    assert {name for name in named if f"{name}{{" not in page and f"{name} " not in page} <= {
        f"kavka_operator_{name}" for name in only_when
    }


def answered(port: int, path: str) -> str:
    """What the operator's port answers; nothing before it is open."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=SECONDS_MAX) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def test_a_deleted_topic_goes_from_kafka_and_then_from_kubernetes(operated: Operated) -> None:
    for name, policy in (("mine", "Delete"), ("kept", "Retain")):
        assert operated.kubernetes.create(own_topic(operated, name, partitions=1, deletionPolicy=policy)).is_well
    operated.start()
    operated.until_ready(("Topic", "mine"), ("Topic", "kept"))
    held = [operated.kubernetes.get("Topic", name)["metadata"].get("finalizers") for name in ("mine", "kept")]
    assert held == [["kavka.dev/finalizer"], None]
    for name in ("mine", "kept"):
        operated.kubernetes.shows("delete", "topics.kavka.dev", name, "--wait=false")
    operated.until(lambda: operated.is_gone("Topic", "mine") and operated.is_gone("Topic", "kept"))
    place = operated.kubernetes.namespace
    operated.until(lambda: {name for name in operated.topics() if name.startswith(f"{place}-")} == {f"{place}-kept"})


def test_the_finalizers_and_conditions_of_others_stay(operated: Operated) -> None:
    mine = own_topic(operated, "mine", partitions=1, deletionPolicy="Delete")
    mine["metadata"]["finalizers"] = ["backup.example.com/hold"]
    assert operated.kubernetes.create(mine).is_well
    theirs = {
        "type": "BackedUp",
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-11-22T00:00:00Z",
    }
    assert operated.kubernetes.see("Topic", "mine", {"conditions": [theirs]}).is_well
    operated.start()
    operated.until_ready(("Topic", "mine"))
    assert set(operated.kubernetes.get("Topic", "mine")["metadata"]["finalizers"]) == {
        "backup.example.com/hold",
        "kavka.dev/finalizer",
    }
    assert operated.condition("Topic", "mine", "BackedUp") == ("True", "Done")
    operated.kubernetes.shows("delete", "topics.kavka.dev", "mine", "--wait=false")
    operated.until(
        lambda: operated.kubernetes.get("Topic", "mine")["metadata"]["finalizers"] == ["backup.example.com/hold"]
    )


def test_topics_without_their_cluster_say_so_and_come_when_it_comes(operated: Operated) -> None:
    operated.kubernetes.shows("delete", "kafkaclusters.kavka.dev", "main")
    assert operated.kubernetes.create(own_topic(operated, "early", partitions=1, deletionPolicy="Delete")).is_well
    operated.start()
    operated.until(lambda: operated.condition("Topic", "early") == ("Unknown", "NoSuchCluster"))
    assert operated.kubernetes.create(CLUSTER).is_well
    operated.until_ready(("Topic", "early"))
    operated.kubernetes.shows("delete", "kafkaclusters.kavka.dev", "main")
    operated.kubernetes.shows("delete", "topics.kavka.dev", "early", "--timeout", "120s")


def test_a_namespace_goes_with_all_that_is_in_it(operated: Operated) -> None:
    for name in ("one", "two"):
        assert operated.kubernetes.create(own_topic(operated, name, partitions=1, deletionPolicy="Delete")).is_well
    operated.start()
    operated.until_ready(("Topic", "one"), ("Topic", "two"))
    operated.kubernetes.end()
    path = f"/api/v1/namespaces/{operated.kubernetes.namespace}"
    operated.until(lambda: operated.kubernetes.api.call("GET", path).status == 404)


@pytest.mark.parametrize("part", in_turn(range(3), 3))
def test_it_may_die_after_any_write(operated: Operated, part: int) -> None:
    """A scenario is played again for each write of a third of them, each time with a death after another one."""
    total = played(operated, "whole")
    assert total > 5
    for last in range(1 + part, total + 1, 3):
        played(operated, f"dies-{last}", last)


def test_an_override_ends_though_the_operator_is_away(operated: Operated) -> None:
    name = f"{operated.kubernetes.namespace}-spike"
    operated.start()
    operated.until_ready(("KafkaCluster", "main"))
    assert operated.kubernetes.create(spike(name, timedelta(hours=1))).is_well
    operated.until(lambda: operated.condition("ClientQuota", "spike") == ("True", "Overridden"))
    assert not is_held(operated, name), "by the override"
    assert operated.kubernetes.apply(spike(name, timedelta(seconds=OVERRIDE_SECONDS))).is_well
    operated.until(lambda: operated.status("ClientQuota", "spike")["observedGeneration"] == 2)
    operated.stop()
    written = len(operated.writes())
    until_outside(lambda: is_held(operated, name), SECONDS_MAX)
    assert len(operated.writes()) == written, "nobody was there to end it"


def spike(name: str, left: timedelta) -> Json:
    """A quota of a client id with an override that ends so soon."""
    until = (datetime.now(UTC) + left).strftime("%Y-%m-%dT%H:%M:%SZ")
    override = {"until": until, "limits": {"producerByteRate": "1Gi"}, "reason": "a backfill"}
    override["from"] = "2026-01-01T00:00:00Z"
    usual = {"entity": {"clientId": {"name": name}}, "limits": {"producerByteRate": "10Ki"}}
    return quota("spike", **usual, overrides=[override])


def is_held(scene: Operated, client_id: str) -> bool:
    """Whether the broker throttles a producer with this client id that sends twenty times what the limit allows."""
    told: list[float] = []
    options = {"bootstrap.servers": scene.broker.bootstrap, "client.id": client_id, "linger.ms": 0}
    producer = Producer({**options, "throttle_cb": lambda event: told.append(event.throttle_time)})
    producer.produce("limited", b"x" * 200_000)
    assert producer.flush(SECONDS_MAX) == 0
    producer.poll(0.5)
    return max(told, default=0.0) > 0


def test_one_operator_acts_and_the_next_when_it_has_gone(operated: Operated, tmp_path: Path) -> None:
    second = Operated(operated.kubernetes, operated.broker, tmp_path / "second.log")
    place = operated.kubernetes.namespace
    operated.start(POD_NAMESPACE=place, POD_NAME="first")
    operated.until(lambda: holder(operated) == "first")
    second.start(POD_NAMESPACE=place, POD_NAME="second")
    try:
        assert operated.kubernetes.create(own_topic(operated, "one", partitions=1)).is_well
        operated.until_ready(("Topic", "one"))
        assert operated.running is not None
        operated.running.terminate()
        assert operated.running.wait(SECONDS_MAX) == 0
        second.until(lambda: holder(second) == "second")
        assert operated.kubernetes.create(own_topic(operated, "two", partitions=1)).is_well
        second.until_ready(("Topic", "two"))
        assert second.writes()
        assert not [words for words in second.writes() if "one" in words]
    finally:
        second.stop()


def holder(scene: Operated) -> str:
    """The operator that holds the lease; empty where none does."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{scene.kubernetes.namespace}/leases/kavka-operator"
    return str(scene.kubernetes.api.call("GET", path).body.get("spec", {}).get("holderIdentity", ""))


def played(scene: Operated, name: str, last: int | None = None) -> int:
    """Make a topic and a quota, and delete the topic; the number of writes that it took."""
    before = len(scene.writes())
    limit = quota(name, entity={"clientId": {"name": f"{scene.kubernetes.namespace}-{name}"}})
    scene.stop()
    scene.start(last)
    assert scene.kubernetes.create(own_topic(scene, name, partitions=2, deletionPolicy="Delete")).is_well
    assert scene.kubernetes.create(limit).is_well
    reach(scene, lambda: scene.condition("Topic", name) == ("True", "Ready"))
    scene.kubernetes.shows("delete", "topics.kavka.dev", name, "--wait=false")
    reach(scene, lambda: scene.is_gone("Topic", name))
    for key in (("ClientQuota", name), ("KafkaCluster", "main")):
        reach(scene, lambda key=key: scene.condition(*key) == ("True", "Ready"))  # type: ignore[misc]
    scene.until(lambda: f"{scene.kubernetes.namespace}-{name}" not in scene.topics())
    return len(scene.writes()) - before


def reach(scene: Operated, holds: Callable[[], bool]) -> None:
    """Wait for something, with an operator that may die meanwhile: it is started again."""
    scene.until(lambda: has_died(scene) or holds())
    if has_died(scene):
        scene.start()
        scene.until(holds)


def has_died(scene: Operated) -> bool:
    """Whether the operator has died of its last write."""
    return scene.running is not None and scene.running.poll() == DIED
