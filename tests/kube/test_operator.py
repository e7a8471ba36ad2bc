"""The operator's process against a real API server and a real broker: from resources to Kafka and back.

The broker runs all the time; what is judged is the operator: what it makes, what it says, that it rests, that it may
die after any write, and that nothing hangs when everything goes.
"""

import json
import re
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import Producer

from tests.kube.cluster import verdict
from tests.kube.objects import quota
from tests.kube.operated import CLUSTER, SECONDS_MAX, Operated, own_topic
from tests.kube.operating import DIED
from tests.support.servers import free_port
from tests.support.waiting import until_outside

MONITORING = Path(__file__).parents[2] / "examples/monitoring/operator"
OVERRIDE_SECONDS = 25
LONG_AGO = "2026-11-01T00:00:00Z"


def test_resources_become_topics_and_quotas_and_their_statuses_rest(declared: Operated) -> None:
    orders = own_topic(declared, "orders", partitions=3, deletionPolicy="Delete")
    assert declared.kubernetes.create(orders).is_well
    assert declared.kubernetes.create(
        quota("clicks", entity={"clientId": {"name": declared.kubernetes.namespace}})
    ).is_well
    declared.start()
    declared.until_ready(("KafkaCluster", "main"), ("Topic", "orders"), ("ClientQuota", "clicks"))
    assert orders["spec"]["topicName"] in declared.topics()
    assert declared.status("Topic", "orders")["partitions"] == 3
    assert [verdict(declared.kubernetes.get(*key)) for key in (("KafkaCluster", "main"), ("Topic", "orders"))] == [
        "Current",
        "Current",
    ]
    before = declared.writes()
    declared.stop()
    declared.start()  # another look at everything, from the start
    assert declared.kubernetes.create(own_topic(declared, "other", partitions=1)).is_well
    declared.until_ready(("Topic", "other"))
    assert [words for words in declared.writes()[len(before) :] if "other" not in words] == []


def test_its_page_has_every_series_that_rules_and_the_dashboard_name(declared: Operated) -> None:
    port, people = free_port(), free_port()
    assert declared.kubernetes.create(own_topic(declared, "orders", partitions=3)).is_well
    assert declared.kubernetes.create(own_topic(declared, "many", replicationFactor=3)).is_well
    declared.start(KAVKA_LISTEN=f"127.0.0.1:{port}", KAVKA_CONSOLE=f"127.0.0.1:{people}")
    declared.until_ready(("KafkaCluster", "main"), ("Topic", "orders"))
    declared.until(lambda: declared.condition("Topic", "many")[0] == "False")
    declared.until(lambda: answered(port, "/healthz") == answered(port, "/readyz") == "ok\n")
    assert "<title>Kavka</title>" in answered(people, "/")
    shown = json.loads(answered(people, "/console.json"))
    assert [(found["name"], found["topics"]) for found in shown["clusters"]] == [("main", 2)]
    assert {(found["name"], found["partitions"]) for found in shown["topics"]} >= {("orders", 3)}
    assert answered(port, "/") == answered(people, "/metrics") == ""
    page = answered(port, "/metrics")
    assert 'kavka_operator_not_ready_timestamp_seconds{kind="Topic",name="many",' in page, page
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


def test_a_deleted_topic_goes_from_kafka_and_then_from_kubernetes(declared: Operated) -> None:
    for name, policy in (("mine", "Delete"), ("kept", "Retain")):
        assert declared.kubernetes.create(own_topic(declared, name, partitions=1, deletionPolicy=policy)).is_well
    declared.start()
    declared.until_ready(("Topic", "mine"), ("Topic", "kept"))
    held = [declared.kubernetes.get("Topic", name)["metadata"].get("finalizers") for name in ("mine", "kept")]
    assert held == [["kavka.dev/finalizer"], None]
    for name in ("mine", "kept"):
        declared.kubernetes.shows("delete", "topics.kavka.dev", name, "--wait=false")
    declared.until(lambda: declared.is_gone("Topic", "mine") and declared.is_gone("Topic", "kept"))
    assert {name for name in declared.topics() if name.startswith(f"{declared.kubernetes.namespace}-")} == {
        f"{declared.kubernetes.namespace}-kept"
    }


def test_the_finalizers_and_conditions_of_others_stay(declared: Operated) -> None:
    mine = own_topic(declared, "mine", partitions=1, deletionPolicy="Delete")
    mine["metadata"]["finalizers"] = ["backup.example.com/hold"]
    assert declared.kubernetes.create(mine).is_well
    theirs = {
        "type": "BackedUp",
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-11-22T00:00:00Z",
    }
    assert declared.kubernetes.see("Topic", "mine", {"conditions": [theirs]}).is_well
    declared.start()
    declared.until_ready(("Topic", "mine"))
    assert set(declared.kubernetes.get("Topic", "mine")["metadata"]["finalizers"]) == {
        "backup.example.com/hold",
        "kavka.dev/finalizer",
    }
    assert declared.condition("Topic", "mine", "BackedUp") == ("True", "Done")
    declared.kubernetes.shows("delete", "topics.kavka.dev", "mine", "--wait=false")
    declared.until(
        lambda: declared.kubernetes.get("Topic", "mine")["metadata"]["finalizers"] == ["backup.example.com/hold"]
    )


def test_topics_without_their_cluster_say_so_and_come_when_it_comes(declared: Operated) -> None:
    declared.kubernetes.shows("delete", "kafkaclusters.kavka.dev", "main")
    assert declared.kubernetes.create(own_topic(declared, "early", partitions=1, deletionPolicy="Delete")).is_well
    declared.start()
    declared.until(lambda: declared.condition("Topic", "early") == ("Unknown", "NoSuchCluster"))
    assert declared.kubernetes.create(CLUSTER).is_well
    declared.until_ready(("Topic", "early"))
    declared.kubernetes.shows("delete", "kafkaclusters.kavka.dev", "main")
    declared.kubernetes.shows("delete", "topics.kavka.dev", "early", "--timeout", "30s")


def test_a_namespace_goes_with_all_that_is_in_it(declared: Operated) -> None:
    for name in ("one", "two"):
        assert declared.kubernetes.create(own_topic(declared, name, partitions=1, deletionPolicy="Delete")).is_well
    declared.start()
    declared.until_ready(("Topic", "one"), ("Topic", "two"))
    declared.kubernetes.end()
    path = f"/api/v1/namespaces/{declared.kubernetes.namespace}"
    declared.until(lambda: declared.kubernetes.api.call("GET", path).status == 404)


def test_it_may_die_after_any_write(declared: Operated) -> None:
    """A scenario of so many writes is played so often again, each time with a death after another write."""
    total = played(declared, "whole")
    assert total > 5
    for last in range(1, total + 1):
        played(declared, f"dies-{last}", last)


def test_an_override_ends_though_the_operator_is_away(declared: Operated) -> None:
    name = f"{declared.kubernetes.namespace}-spike"
    until = (datetime.now(UTC) + timedelta(seconds=OVERRIDE_SECONDS)).strftime("%Y-%m-%dT%H:%M:%SZ")
    override = {"until": until, "limits": {"producerByteRate": "1Gi"}, "reason": "a backfill"}
    override["from"] = "2026-01-01T00:00:00Z"
    usual = {"entity": {"clientId": {"name": name}}, "limits": {"producerByteRate": "10Ki"}}
    assert declared.kubernetes.create(quota("spike", **usual, overrides=[override])).is_well
    declared.start()
    declared.until(lambda: declared.condition("ClientQuota", "spike") == ("True", "Overridden"))
    declared.stop()
    written = len(declared.writes())
    assert not is_held(declared, name), "by the override"
    until_outside(lambda: is_held(declared, name), SECONDS_MAX)
    assert len(declared.writes()) == written, "nobody was there to end it"


def is_held(scene: Operated, client_id: str) -> bool:
    """Whether the broker throttles a producer with this client id that sends twenty times what the limit allows."""
    told: list[float] = []
    options = {"bootstrap.servers": scene.broker.bootstrap, "client.id": client_id, "linger.ms": 0}
    producer = Producer({**options, "throttle_cb": lambda event: told.append(event.throttle_time)})
    producer.produce("limited", b"x" * 200_000)
    assert producer.flush(SECONDS_MAX) == 0
    producer.poll(0.5)
    return max(told, default=0.0) > 0


def test_one_operator_acts_and_the_next_when_it_has_gone(declared: Operated, tmp_path: Path) -> None:
    second = Operated(declared.kubernetes, declared.broker, tmp_path / "second.log")
    place = declared.kubernetes.namespace
    declared.start(POD_NAMESPACE=place, POD_NAME="first")
    declared.until(lambda: holder(declared) == "first")
    second.start(POD_NAMESPACE=place, POD_NAME="second")
    try:
        assert declared.kubernetes.create(own_topic(declared, "one", partitions=1)).is_well
        declared.until_ready(("Topic", "one"))
        assert declared.running is not None
        declared.running.terminate()
        assert declared.running.wait(SECONDS_MAX) == 0
        second.until(lambda: holder(second) == "second")
        assert declared.kubernetes.create(own_topic(declared, "two", partitions=1)).is_well
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
    scene.until_ready(("ClientQuota", name), ("KafkaCluster", "main"))
    assert f"{scene.kubernetes.namespace}-{name}" not in scene.topics()
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
