"""`kavka plan` over a kubeconfig: a real API server's own words, and what the operator then does."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.kube.cluster import Kubernetes
from tests.kube.objects import cluster, external, pool, quota, topic
from tests.kube.test_command import kavka
from tests.kube.test_operator import Operated
from tests.kube.test_pods import RUNS, begun, find, of_pods, say
from tests.support.control_plane import Json
from tests.support.servers import Server, start_server

NOTHING, REFUSED, SOMETHING = 0, 1, 2
SIZED = [pool("nodes", replicas=3, storage={"volumes": [{"name": "data", "size": "1Gi"}]})]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker that answers for the clusters of this file."""
    running = start_server(tmp_path_factory.mktemp("broker"))
    yield running
    running.kill()


@pytest.fixture
def operated(kubernetes: Kubernetes, broker: Server, tmp_path: Path) -> Iterator[Operated]:
    scene = Operated(kubernetes, broker, tmp_path / "operator.log")
    with ExitStack() as stack:
        stack.callback(scene.stop)
        scene.start()
        yield scene


def planned(kubernetes: Kubernetes, directory: Path, *resources: Json) -> tuple[int, list[str]]:
    """Exit code of a plan for these resources, and its lines."""
    path = directory / "wanted.yaml"
    path.write_text(yaml.safe_dump_all(resources))
    code, said = kavka(kubernetes, "plan", "-f", str(path))
    return code, said.splitlines()


def running(scene: Operated, resource: Json) -> None:
    """Apply a cluster of one node, and let its pod run."""
    begun(scene, resource)
    say(scene, "pods-nodes-0-0", RUNS)
    scene.until(
        lambda: [node["state"] for node in scene.status("KafkaCluster", "pods").get("nodes", [])] == ["Running"]
    )


def test_the_api_server_says_what_would_become_of_each_resource(kubernetes: Kubernetes, tmp_path: Path) -> None:
    main = cluster("main", nodePools=SIZED)
    code, lines = planned(kubernetes, tmp_path, main)
    assert (code, "  does: start node 2" in lines) == (SOMETHING, True), lines
    code, lines = planned(kubernetes, tmp_path, cluster("main"))
    assert (code, any('volume "data" has no size' in line for line in lines)) == (REFUSED, True), lines
    for made in (main, topic("orders", partitions=3)):
        assert kubernetes.apply(made).is_well
    assert planned(kubernetes, tmp_path, main, topic("orders", partitions=3)) == (
        NOTHING,
        [
            "kafkacluster.kavka.dev/main unchanged",
            "topic.kavka.dev/orders unchanged",
            "2 unchanged, 0 restarts",
        ],
    )
    code, lines = planned(kubernetes, tmp_path, topic("orders", partitions=6), quota("etl"), {"kind": "Namespace"})
    assert (code, lines[0]) == (SOMETHING, "topic.kavka.dev/orders configured"), lines
    assert lines[1] == "  spec.partitions: 3 -> 6"
    assert "clientquota.kavka.dev/etl created" in lines
    assert any("left out: Namespace" in line for line in lines)
    assert kubernetes.get("Topic", "orders")["spec"]["partitions"] == 3, "nothing is written"


def test_what_is_refused_is_said_in_the_servers_words(kubernetes: Kubernetes, tmp_path: Path) -> None:
    assert kubernetes.apply(topic("orders", partitions=6)).is_well
    assert kubernetes.see("Topic", "orders", {"partitions": 6}).is_well
    code, lines = planned(kubernetes, tmp_path, topic("orders", partitions=3), topic("fine", partitions=1))
    assert code == REFUSED
    assert "topic.kavka.dev/fine created" in lines
    (refused,) = [line for line in lines if line.startswith("  refused: ")]
    assert refused.startswith("  refused: the API server refuses (422): ")
    assert "partitions may only grow" in refused
    code, lines = planned(kubernetes, tmp_path, topic("orders", partitons=3))
    assert (code, any("spec.partitons" in line for line in lines)) == (REFUSED, True), lines


@pytest.mark.parametrize("way", ["server-side", "client-side"])
def test_a_field_that_was_taken_out_is_told_however_it_was_applied(
    kubernetes: Kubernetes, tmp_path: Path, way: str
) -> None:
    before = topic("orders", partitions=3, config={"retention.ms": "1000", "cleanup.policy": "delete"})
    options = ["--server-side"] if way == "server-side" else []
    kubernetes.shows("apply", *options, "-f", "-", stdin=yaml.safe_dump(before))
    after = topic("orders", partitions=3, config={"cleanup.policy": "delete"})
    code, lines = planned(kubernetes, tmp_path, after)
    assert (code, lines[:2]) == (
        SOMETHING,
        ["topic.kavka.dev/orders configured", "  spec.config[retention.ms]: 1000 -> (none)"],
    )


def test_the_nodes_that_would_restart_are_named_with_their_reasons(operated: Operated, tmp_path: Path) -> None:
    running(operated, of_pods())
    changed = of_pods(config={"num.io.threads": "4"}, rollout={"approval": "Manual"})
    nodes = changed["spec"]["nodePools"][0]
    nodes["resources"] = {"requests": {"memory": "2Gi"}}
    code, lines = planned(operated.kubernetes, tmp_path, changed)
    assert code == SOMETHING, lines
    assert "  spec.config[num.io.threads]: (none) -> 4" in lines
    reason = "num.io.threads, resources of spec.nodePools[nodes] have changed"
    assert f"  restarts: broker 0, as {reason}" in lines
    (waits,) = [line.strip() for line in lines if line.startswith("  waits: ")]
    assert any(line.startswith("  not known: what only brokers tell") for line in lines), lines
    assert operated.kubernetes.apply(changed).is_well
    operated.until(lambda: operated.condition("KafkaCluster", "pods", "RolloutPending")[0] == "True")
    plan = operated.status("KafkaCluster", "pods")["rollout"]["plan"]
    assert waits.endswith(f"kavka.dev/approve-rollout={plan}"), "the operator's plan has the same hash"


def test_addresses_that_services_got_restart_nobody(operated: Operated, tmp_path: Path) -> None:
    outside = {"name": "OUTSIDE", "port": 9094, "service": {"type": "NodePort"}}
    listeners = [{"name": "INSIDE", "port": 9092}, outside]
    running(operated, of_pods(listeners=listeners))
    changed = of_pods(listeners=listeners, rollout={"delaySeconds": 1})
    code, lines = planned(operated.kubernetes, tmp_path, changed)
    assert (code, [line for line in lines if "restarts: " in line]) == (SOMETHING, []), lines


def test_a_volume_cannot_shrink_and_grows(operated: Operated, tmp_path: Path) -> None:
    running(operated, of_pods(size="2Gi"))
    code, lines = planned(operated.kubernetes, tmp_path, of_pods(size="1Gi"))
    assert (code, any("a volume may only grow" in line for line in lines)) == (REFUSED, True), lines
    code, lines = planned(operated.kubernetes, tmp_path, of_pods(size="3Gi"))
    assert (code, '  does: grow volume "data" of node 0 to 3Gi' in lines) == (SOMETHING, True), lines
    assert find(operated, "persistentvolumeclaims", "data-pods-nodes-0")["spec"]["resources"]["requests"] == {
        "storage": "2Gi"
    }


def test_brokers_that_can_be_reached_tell_what_is_done_to_topics(
    operated: Operated, broker: Server, tmp_path: Path
) -> None:
    kubernetes = operated.kubernetes
    name = f"{kubernetes.namespace}-orders"
    assert kubernetes.apply(external(bootstrapServers=broker.bootstrap)).is_well
    assert kubernetes.apply(topic("orders", topicName=name, partitions=1)).is_well
    wanted = [topic("orders", topicName=name, partitions=4), topic("wide", replicationFactor=7, partitions=1)]
    operated.until(lambda: name in operated.topics())
    code, lines = planned(kubernetes, tmp_path, *wanted)
    assert f'  does: add partitions to topic "{name}", to have 4' in lines
    assert (code, any("TooFewBrokers" in line or "Rejected" in line for line in lines)) == (REFUSED, True), lines
    path = tmp_path / "wanted.yaml"
    code, said = kavka(kubernetes, "plan", "-o", "json", "-f", str(path))
    assert (code, [found["change"] for found in json.loads(said)["resources"]]) == (REFUSED, ["configured", "created"])


def test_a_cluster_whose_objects_may_not_be_read_is_judged_by_its_status(
    kubernetes: Kubernetes, tmp_path: Path
) -> None:
    assert kubernetes.apply(cluster("main", nodePools=SIZED)).is_well
    nodes = [{"id": number, "state": "Running", "roles": ["broker", "controller"]} for number in range(3)]
    assert kubernetes.see("KafkaCluster", "main", {"nodes": nodes, "activeController": 0}).is_well
    changed = cluster("main", nodePools=SIZED, config={"num.io.threads": "4"})
    code, lines = planned(kubernetes, tmp_path, changed)
    assert code == SOMETHING
    order = [line.split(",")[0].strip() for line in lines if line.startswith(("  restarts", "  then"))]
    assert order == ["restarts: broker 1", "then: broker 2", "then: broker 0"], "the active controller last"
