"""What people delete or edit by hand under a running cluster of pods, on a real API server with its controllers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.cluster import Kubernetes
from tests.kube.test_operator import Operated
from tests.kube.test_pods import RUNS, begun, find, message, names, of_pods, place, say
from tests.support.control_plane import Json
from tests.support.servers import Server, start_server


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = start_server(tmp_path_factory.mktemp("broker"))
    yield running
    running.kill()


@pytest.fixture
def operated(kubernetes: Kubernetes, broker: Server, tmp_path: Path) -> Iterator[Operated]:
    scene = Operated(kubernetes, broker, tmp_path / "operator.log")
    scene.start()
    yield scene
    scene.stop()


@pytest.fixture
def machine(kubernetes: Kubernetes) -> Iterator[str]:
    """A machine that pods can be bound to: only then Kubernetes counts their volumes as used."""
    name = "machine-of-volumes"
    assert kubernetes.api.call("POST", "/api/v1/nodes", {"metadata": {"name": name}}).is_well
    yield name
    kubernetes.api.call("DELETE", f"/api/v1/nodes/{name}")


def bind(scene: Operated, pod: str, machine: str) -> None:
    """Do what a scheduler does."""
    binding = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": machine}}
    answer = scene.kubernetes.api.call("POST", f"{place(scene, 'pods', pod)}/binding", binding)
    assert answer.is_well, answer.message


def test_a_stateful_set_deleted_without_its_pod_comes_back_and_takes_the_pod(operated: Operated) -> None:
    """`kubectl delete --cascade=orphan`, by which people change what a StatefulSet does not let them change."""
    begun(operated, of_pods())
    say(operated, "pods-nodes-0-0", RUNS)
    pod = find(operated, "pods", "pods-nodes-0-0")
    deleted = operated.kubernetes.kubectl("delete", "statefulset", "pods-nodes-0", "--cascade=orphan")
    assert deleted.returncode == 0, deleted.stderr
    former = pod["metadata"]["ownerReferences"][0]["uid"]

    def adopted() -> bool:
        owners = find(operated, "pods", "pods-nodes-0-0")["metadata"].get("ownerReferences", [])
        return bool(owners) and owners[0]["uid"] != former

    operated.until(adopted)
    assert find(operated, "pods", "pods-nodes-0-0")["metadata"]["uid"] == pod["metadata"]["uid"], "it went on running"
    operated.until(lambda: "StatefulSet is gone" not in message(operated))


def test_a_volume_that_was_deleted_under_its_pod_keeps_the_pod(operated: Operated, machine: str) -> None:
    """Kubernetes keeps the volume as long as the pod, so neither a roll nor a drain may take the pod away."""
    begun(operated, of_pods(config={"num.io.threads": "4"}))
    bind(operated, "pods-nodes-0-0", machine)
    say(operated, "pods-nodes-0-0", RUNS)
    operated.until(lambda: names(operated, "poddisruptionbudgets") == ["pods-nodes-0"])
    claim = place(operated, "persistentvolumeclaims", "data-pods-nodes-0")
    assert operated.kubernetes.api.call("DELETE", claim).is_well
    assert find(operated, "persistentvolumeclaims", "data-pods-nodes-0")["metadata"]["deletionTimestamp"]
    before = find(operated, "pods", "pods-nodes-0-0")["metadata"]["uid"]
    operated.kubernetes.apply(of_pods(config={"num.io.threads": "5"}))
    operated.until(lambda: "would come back empty: data-pods-nodes-0 is marked for deletion" in message(operated))
    operated.until(lambda: find(operated, "poddisruptionbudgets", "pods-nodes-0")["spec"]["maxUnavailable"] == 0)
    assert find(operated, "pods", "pods-nodes-0-0")["metadata"]["uid"] == before


def told(scene: Operated) -> Json:
    """What the status says of a cluster at rest, without its times."""
    status = scene.status("KafkaCluster", "pods")
    names = ("clusterId", "brokers", "readyBrokers", "pools", "nodes", "rollout", "lastRollout")
    return {name: status.get(name) for name in names}


def test_a_status_that_was_edited_by_hand_is_written_again_and_restarts_nobody(operated: Operated) -> None:
    """Ids of pools are kept on volumes besides, and those are believed; a roll that never was does not end either."""
    begun(operated, of_pods())
    say(operated, "pods-nodes-0-0", RUNS)
    operated.until(lambda: told(operated)["readyBrokers"] == 1 and told(operated)["clusterId"])
    before, uid = told(operated), find(operated, "pods", "pods-nodes-0-0")["metadata"]["uid"]
    edited = {
        "clusterId": "of-nobody",
        "brokers": 7,
        "readyBrokers": 5,
        "pools": [{"name": "nodes", "firstNodeId": 40}],
        "nodes": [{"id": 40, "state": "Failed", "roles": ["broker"]}],
        "rollout": {"plan": "p", "progress": "1/2", "done": 1, "total": 2, "current": [0]},
    }
    patch = ("--type", "merge", "--patch", json.dumps({"status": edited}))
    words = ("--subresource", "status", *patch, "--output", "json")
    shown = json.loads(operated.kubernetes.shows("patch", "kafkaclusters", "pods", *words))
    assert edited.items() <= shown["status"].items()  # as the API server took it: the operator may be quick to mend it
    operated.until(lambda: told(operated) == before)
    assert find(operated, "pods", "pods-nodes-0-0")["metadata"]["uid"] == uid
    assert names(operated, "statefulsets") == ["pods-nodes-0"]
