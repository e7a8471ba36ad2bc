"""Other processor and memory for a broker that runs, on a real API server: no pod is made again.

No kubelet runs here, so what a machine makes of it is shown by e2e/test_resizing.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.cluster import Kubernetes
from tests.kube.test_operator import Operated
from tests.kube.test_pods import RUNS, begun, find, of_pods, say
from tests.support.control_plane import Json
from tests.support.servers import Server, start_server

POD = "pods-nodes-0-0"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The broker that the one pod is said to run."""
    running = start_server(tmp_path_factory.mktemp("broker"), {"node.id": "0"})
    yield running
    running.kill()


@pytest.fixture
def operated(kubernetes: Kubernetes, broker: Server, tmp_path: Path) -> Iterator[Operated]:
    scene = Operated(kubernetes, broker, tmp_path / "operator.log")
    scene.start(KAVKA_TEST_NODE="0")
    yield scene
    scene.stop()


def sized(cpu: str, **resources: Json) -> Json:
    """One node with so much processor."""
    found = of_pods()
    asked = {"requests": {"cpu": cpu, "memory": "1Gi"}, **resources}
    found["spec"]["nodePools"][0]["resources"] = asked
    return found


def begin(scene: Operated, resource: Json) -> str:
    """Let the cluster be ready; the uid of its pod."""
    begun(scene, resource)
    say(scene, POD, RUNS)
    scene.until_ready(("KafkaCluster", "pods"))
    return uid(scene)


def uid(scene: Operated) -> str:
    return str(find(scene, "pods", POD).get("metadata", {}).get("uid"))


def processor(scene: Operated) -> str | None:
    """What the pod asks for of the processor."""
    containers = find(scene, "pods", POD).get("spec", {}).get("containers", [])
    return next((container["resources"]["requests"]["cpu"] for container in containers), None)


def is_settled(scene: Operated) -> bool:
    """Whether the newest generation of the cluster is ready."""
    seen = scene.status("KafkaCluster", "pods").get("observedGeneration")
    is_newest = seen == scene.kubernetes.get("KafkaCluster", "pods")["metadata"]["generation"]
    return is_newest and scene.condition("KafkaCluster", "pods") == ("True", "Ready")


def test_other_amounts_are_given_without_a_restart_though_rolls_are_held(operated: Operated) -> None:
    former = begin(operated, sized("500m"))
    before = len(operated.writes())
    wanted = sized("1")
    wanted["spec"]["rollout"] = {"hold": True}
    assert operated.kubernetes.apply(wanted).is_well
    operated.until(lambda: processor(operated) == "1" and is_settled(operated))
    assert uid(operated) == former
    (container,) = find(operated, "statefulsets", "pods-nodes-0")["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["cpu"] == "1"
    operated.until(lambda: sum(words.startswith("Pod ") for words in operated.writes()[before:]) >= 2)
    later = operated.writes()[before:]
    assert "no Pod pods-nodes-0-0" not in later
    assert len([words for words in later if words.startswith("Pod ")]) == 2, "given once, and noted once"


def test_what_the_api_server_refuses_is_a_restart_that_says_why(operated: Operated) -> None:
    """A pod whose requests are its limits is of a class of its own, which no pod leaves while it runs."""
    limits: Json = {"limits": {"cpu": "1", "memory": "1Gi"}}
    former = begin(operated, sized("1", **limits))
    wanted = sized("500m", **limits)
    wanted["spec"]["rollout"] = {"hold": True}
    assert operated.kubernetes.apply(wanted).is_well
    operated.until(lambda: operated.condition("KafkaCluster", "pods", "RolloutPending")[0] == "True")
    assert (uid(operated), processor(operated)) == (former, "1")
    (container,) = find(operated, "statefulsets", "pods-nodes-0")["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["cpu"] == "1", "what a pod does not take is in no template"
    wanted["spec"]["rollout"] = {"hold": False}
    assert operated.kubernetes.apply(wanted).is_well
    operated.until(lambda: uid(operated) not in {former, "None"})
    operated.until(lambda: "(by a restart: " in operated.kubernetes.shows("get", "events", "--output", "yaml"))
