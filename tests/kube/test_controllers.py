"""The controllers beside the API server do what the operator will count on: without them its tests show nothing."""

from tests.kube.cluster import Kubernetes
from tests.support.control_plane import Json
from tests.support.waiting import until_outside

SECONDS_MAX = 60.0
LABELS = {"app": "node"}
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "broker", "image": "broker"}], "terminationGracePeriodSeconds": 0},
}
SET: Json = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "node"},
    "spec": {"serviceName": "node", "selector": {"matchLabels": LABELS}, "template": TEMPLATE},
}
RUNS = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}],
    "podIP": "10.244.0.9",
}


def pods(kubernetes: Kubernetes) -> list[str]:
    """The names of the pods that are there."""
    answer = kubernetes.api.call("GET", f"/api/v1/namespaces/{kubernetes.namespace}/pods")
    return [pod["metadata"]["name"] for pod in answer.body["items"]]


def make(kubernetes: Kubernetes, group: str, plural: str, body: Json) -> None:
    answer = kubernetes.api.call("POST", f"/apis/{group}/namespaces/{kubernetes.namespace}/{plural}", body)
    assert answer.is_well, answer.message


def test_a_stateful_set_makes_its_pod_and_takes_it_along(kubernetes: Kubernetes) -> None:
    make(kubernetes, "apps/v1", "statefulsets", SET)
    until_outside(lambda: pods(kubernetes) == ["node-0"], SECONDS_MAX)
    path = f"/apis/apps/v1/namespaces/{kubernetes.namespace}/statefulsets/node"
    assert kubernetes.api.call("DELETE", path, query={"propagationPolicy": "Background"}).is_well
    until_outside(lambda: pods(kubernetes) == [], SECONDS_MAX)


def test_a_pod_goes_only_while_its_budget_is_open(kubernetes: Kubernetes) -> None:
    make(kubernetes, "apps/v1", "statefulsets", SET)
    until_outside(lambda: pods(kubernetes) == ["node-0"], SECONDS_MAX)
    pod = f"/api/v1/namespaces/{kubernetes.namespace}/pods/node-0"
    merge = "application/merge-patch+json"
    assert kubernetes.api.call("PATCH", f"{pod}/status", {"status": RUNS}, content=merge).is_well
    budget = {"metadata": {"name": "node"}, "spec": {"maxUnavailable": 0, "selector": {"matchLabels": LABELS}}}
    make(kubernetes, "policy/v1", "poddisruptionbudgets", {**budget, "apiVersion": "policy/v1"})
    path = f"/apis/policy/v1/namespaces/{kubernetes.namespace}/poddisruptionbudgets/node"
    until_outside(lambda: kubernetes.api.call("GET", path).body.get("status", {}).get("expectedPods") == 1, SECONDS_MAX)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "node-0"}}
    assert kubernetes.api.call("POST", f"{pod}/eviction", eviction).status == 429
    assert kubernetes.api.call("PATCH", path, {"spec": {"maxUnavailable": 1}}, content=merge).is_well
    until_outside(lambda: kubernetes.api.call("POST", f"{pod}/eviction", eviction).is_well, SECONDS_MAX)


def test_a_namespace_goes_with_all_that_is_in_it(kubernetes: Kubernetes) -> None:
    make(kubernetes, "apps/v1", "statefulsets", SET)
    kubernetes.end()
    path = f"/api/v1/namespaces/{kubernetes.namespace}"
    until_outside(lambda: kubernetes.api.call("GET", path).status == 404, SECONDS_MAX)
