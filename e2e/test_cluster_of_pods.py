"""A KafkaCluster as pods: a client that loses nothing whatever becomes of pods and volumes."""

import json

from e2e.cluster_namespace import OF_CLUSTER, Scene
from e2e.kubectl import tried, until

LOST_POD, LOST_CLAIM = "main-nodes-2-0", "data-main-nodes-2"


def uid(scene: Scene, kind: str, name: str) -> str:
    return scene.ask("get", kind, name, "--ignore-not-found", "--output", "jsonpath={.metadata.uid}")


def until_replaced(scene: Scene, kind: str, name: str, former: str) -> None:
    """Wait until there is another object of the name, and all is well."""
    until(lambda: uid(scene, kind, name) not in {"", former})
    scene.until_ready()
    scene.until_more()


def open_budgets(scene: Scene) -> list[str]:
    """The pods that may be evicted now."""
    budgets = json.loads(scene.ask("get", "poddisruptionbudgets", *OF_CLUSTER, "--output", "json"))["items"]
    return [f"{found['metadata']['name']}-0" for found in budgets if found["status"].get("disruptionsAllowed")]


def evicts(scene: Scene, pod: str) -> bool:
    """Ask for an eviction; whether a budget lets it be."""
    metadata = {"name": pod, "namespace": scene.namespace}
    eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})
    path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod}/eviction"
    return tried("create", "--raw", path, "--filename", "-", stdin=eviction).returncode == 0


def test_one_pod_can_be_evicted_the_others_not_and_it_comes_back(loaded: Scene) -> None:
    before = loaded.pods()
    until(lambda: len(open_budgets(loaded)) == 1)
    (open_one,) = open_budgets(loaded)
    others = [pod for pod in before if pod != open_one]
    assert evicts(loaded, open_one)
    assert not [pod for pod in others if evicts(loaded, pod)]
    until_replaced(loaded, "pod", open_one, before[open_one])
    assert loaded.changed(before) == {open_one}
    loaded.has_lost_nothing()


def test_a_volume_that_is_lost_is_filled_again(loaded: Scene) -> None:
    former = uid(loaded, "pvc", LOST_CLAIM)
    loaded.ask("delete", "pvc", LOST_CLAIM, "--wait=false")
    loaded.ask("delete", "pod", LOST_POD, "--wait=false")
    until_replaced(loaded, "pvc", LOST_CLAIM, former)
    loaded.has_lost_nothing()


def test_a_cluster_that_is_deleted_and_applied_again_has_its_records(loaded: Scene) -> None:
    loaded.until_more()
    count = loaded.acknowledged()
    loaded.ask("delete", "pod", "producer", "--now")
    loaded.ask("delete", "kafkaclusters", "main")
    until(lambda: not loaded.phases())
    loaded.wants()
    loaded.until_ready()
    loaded.check(count)
