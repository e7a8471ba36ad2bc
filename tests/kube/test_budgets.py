"""Budgets of nodes and the real disruption controller: an eviction goes through where a node may go, nowhere else."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.kubernetes.live.api import Api, Bridge
from kavka_operator.platform.kubernetes.live.disruption_budgets import Budgets
from kavka_operator.platform.kubernetes.objects.names import labels_of, selector_of
from tests.kube.cluster import Kubernetes
from tests.support.control_plane import Json
from tests.support.waiting import until_outside
from tests.unit.operator.fakes import cluster

SECONDS_MAX = 60.0
RUNS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.244.0.9"}


@pytest.fixture
def budgets(kubernetes: Kubernetes) -> Iterator[Budgets]:
    """The budgets of the cluster "main", by the operator's own Api."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    bridge = Bridge(loop)

    async def connect() -> ApiClient:
        await config.load_kube_config(config_file=str(kubernetes.plane.kubeconfig))
        return ApiClient()

    client = bridge.wait(connect())
    yield Budgets((kubernetes.namespace, "main"), Api(client), bridge, time.monotonic)
    bridge.wait(client.close())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def call(kubernetes: Kubernetes, verb: str, group: str, rest: str, body: Json | None = None) -> Json:
    content = "application/merge-patch+json" if verb == "PATCH" else "application/json"
    answer = kubernetes.api.call(verb, f"{group}/namespaces/{kubernetes.namespace}/{rest}", body, content=content)
    assert answer.is_well, answer.message
    return answer.body


def begin(kubernetes: Kubernetes) -> tuple[KafkaCluster, dict[int, Json]]:
    """Three nodes as the operator makes them, whose pods are said to run."""
    found = {}
    for number in range(3):
        labels = {**labels_of("main"), **selector_of("main", number)}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "broker", "image": "broker"}]}}
        spec = {"serviceName": "main", "selector": {"matchLabels": selector_of("main", number)}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": f"main-n-{number}"}, "spec": spec}
        found[number] = call(kubernetes, "POST", "/apis/apps/v1", "statefulsets", body)
    pods = "/api/v1"
    until_outside(lambda: len(call(kubernetes, "GET", pods, "pods")["items"]) == 3, SECONDS_MAX)
    for number in found:
        call(kubernetes, "PATCH", pods, f"pods/main-n-{number}-0/status", {"status": RUNS})
    return cluster(metadata={"namespace": kubernetes.namespace}), found


def evicted(kubernetes: Kubernetes, number: int) -> int:
    """The answer to an eviction."""
    name = f"main-n-{number}-0"
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{kubernetes.namespace}/pods/{name}/eviction"
    return kubernetes.api.call("POST", path, body).status


def test_an_eviction_goes_through_where_a_node_may_go(kubernetes: Kubernetes, budgets: Budgets) -> None:
    main, sets = begin(kubernetes)
    assert budgets.allow(main, sets, frozenset())
    assert [evicted(kubernetes, number) for number in sets] == [429, 429, 429]
    assert budgets.allow(main, sets, frozenset({1}))
    until_outside(lambda: evicted(kubernetes, 1) == 201, SECONDS_MAX)
    assert [evicted(kubernetes, number) for number in (0, 2)] == [429, 429]


def test_what_closes_is_closed_at_once_and_at_rest_nothing_is_written(kubernetes: Kubernetes, budgets: Budgets) -> None:
    main, sets = begin(kubernetes)
    assert budgets.allow(main, sets, frozenset({2}))
    assert not budgets.allow(main, sets, frozenset({2}))
    group, path = "/apis/policy/v1", "poddisruptionbudgets/main-n-2"
    until_outside(
        lambda: call(kubernetes, "GET", group, path).get("status", {}).get("disruptionsAllowed") == 1, SECONDS_MAX
    )
    assert budgets.allow(main, sets, frozenset())
    assert evicted(kubernetes, 2) == 429, "whether Kubernetes has counted again or not"


def test_a_budget_of_others_is_left_alone(kubernetes: Kubernetes, budgets: Budgets) -> None:
    main, sets = begin(kubernetes)
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "other"}}}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "main-n-0"}, "spec": spec}
    call(kubernetes, "POST", "/apis/policy/v1", "poddisruptionbudgets", body)
    with pytest.raises(PlatformUnavailableError, match='"main-n-0" is there and is not of this KafkaCluster'):
        budgets.allow(main, sets, frozenset())


def test_a_budget_goes_with_its_node(kubernetes: Kubernetes, budgets: Budgets) -> None:
    main, sets = begin(kubernetes)
    assert budgets.allow(main, sets, frozenset())
    path = f"/apis/apps/v1/namespaces/{kubernetes.namespace}/statefulsets/main-n-1"
    assert kubernetes.api.call("DELETE", path, query={"propagationPolicy": "Background"}).is_well

    def left() -> list[str]:
        items = call(kubernetes, "GET", "/apis/policy/v1", "poddisruptionbudgets")["items"]
        return [item["metadata"]["name"] for item in items]

    until_outside(lambda: left() == ["main-n-0", "main-n-2"], SECONDS_MAX)
