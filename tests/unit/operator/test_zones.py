"""Racks that follow from the labels of machines, and what a pool asks of its pods."""

from types import SimpleNamespace as Bag
from typing import Any, cast

import pytest

from kavka_cli.kubernetes.api_server import ApiServer, KubernetesError
from kavka_cli.kubernetes.preview import foreseen
from kavka_operator.domain.plan import RestartNode, StartNode
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.kubernetes.live.api import ApiError
from kavka_operator.platform.kubernetes.objects.dry_run_pods import fits_in_place_of
from tests.unit.operator.pods import RUNS, SIZED, Scene, main

KEY = "topology.kubernetes.io/zone"


def pool(**more: Any) -> dict[str, Any]:
    return {"name": "nodes", "replicas": 3, "storage": SIZED, **more}


def machine(name: str, zone: str | None, *taints: dict[str, str], **labels: str) -> dict[str, Any]:
    """A machine as the API server has it."""
    given = {**labels, **({KEY: zone} if zone else {})}
    return {"metadata": {"name": name, "labels": given}, "spec": {"taints": list(taints)}}


def zoned(*machines: dict[str, Any], **more: Any) -> Scene:
    """A cluster whose pool names the zone, on these machines."""
    scene = Scene(main(nodePools=[pool(topologyKey=KEY, **more)]))
    scene.api.nodes = list(machines)
    return scene


def racks(scene: Scene) -> list[str | None]:
    return [node.rack for node in scene.look().wanted]


def pod_of(scene: Scene, number: int) -> dict[str, Any]:
    """The spec of a node's pod, as its StatefulSet makes it."""
    found: dict[str, Any] = scene.api.one("StatefulSet", f"main-nodes-{number}")["spec"]["template"]["spec"]
    return found


THREE = (machine("m1", "a"), machine("m2", "b"), machine("m3", "c"), machine("m4", None))


def test_nodes_go_round_the_zones_and_stay_there() -> None:
    scene = zoned(*THREE)
    scene.start()
    assert racks(scene) == ["a", "b", "c"]
    assert [pod_of(scene, number)["nodeSelector"] for number in range(3)] == [{KEY: zone} for zone in "abc"]
    assert "broker.rack=b" in scene.api.one("Pod", "main-nodes-1-0")["metadata"]["annotations"]["kavka.dev/settings"]
    scene.api.nodes = [machine("m9", "x")]
    scene.begin()
    assert racks(scene) == ["a", "b", "c"], "the volumes keep what was drawn"
    before = len(scene.api.writes)
    scene.look()
    assert len(scene.api.writes) == before


def test_a_new_node_goes_where_the_fewest_are() -> None:
    scene = zoned(*THREE)
    scene.start()
    scene.wanted = main(nodePools=[pool(topologyKey=KEY, replicas=5)])
    assert racks(scene) == ["a", "b", "c", "a", "b"]


def test_an_operator_that_dies_while_it_starts_nodes_is_followed_by_one_that_gives_the_same_racks() -> None:
    scene = zoned(*THREE)
    scene.look()
    scene.do(StartNode(0))
    scene.api.nodes = [machine("m3", "c"), machine("m2", "b"), machine("m1", "a"), machine("m0", "0")]
    scene.begin()
    assert racks(scene) == ["a", "b", "c"]


def test_a_node_that_runs_already_gets_the_zone_of_its_machine() -> None:
    scene = Scene(main(nodePools=[pool()]))
    scene.start()
    scene.api.nodes = list(THREE)
    for number, place in enumerate(("m3", "m2", "m2")):
        found = scene.api.objects["Pod", f"main-nodes-{number}-0"]
        scene.api.place({**found, "spec": {**found["spec"], "nodeName": place}})
    scene.wanted = main(nodePools=[pool(topologyKey=KEY)])
    assert racks(scene) == ["c", "b", "b"]
    scene.do(RestartNode(0, "a new rack"))
    assert pod_of(scene, 0)["nodeSelector"] == {KEY: "c"}
    assert racks(scene) == ["c", "b", "b"], "while its pod has no machine, its volume says where it was"
    scene.api.say("main-nodes-0-0", **RUNS)
    assert scene.look().seen[0].fingerprint == scene.look().wanted[0].fingerprint


def test_only_machines_that_take_the_pods_count() -> None:
    tainted = machine("m1", "a", {"key": "only", "value": "x", "effect": "NoSchedule"})
    scene = zoned(tainted, machine("m2", "b", disk="fast"), machine("m3", "c"))
    assert racks(scene) == ["b", "c", "b"]
    scene = zoned(tainted, machine("m2", "b", disk="fast"), pod={"nodeSelector": {"disk": "fast"}})
    assert racks(scene) == ["b", "b", "b"]
    borne = {"tolerations": [{"key": "only", "operator": "Equal", "value": "x"}]}
    assert racks(zoned(tainted, machine("m2", "b"), pod=borne)) == ["a", "b", "a"]
    other = {"tolerations": [{"key": "only", "operator": "Equal", "value": "y"}]}
    assert racks(zoned(tainted, machine("m2", "b"), pod=other)) == ["b", "b", "b"]
    cordoned = machine("m1", "a", {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    assert racks(zoned(cordoned, machine("m2", "b"))) == ["a", "b", "a"], "a zone stays"
    every = {"tolerations": [{"operator": "Exists"}]}
    assert racks(zoned(tainted, machine("m2", "b"), pod=every)) == ["a", "b", "a"]


def test_zones_need_machines_that_can_be_seen() -> None:
    scene = zoned(machine("m1", None))
    assert f"no machine that takes its pods has the label {KEY}" in (scene.look().refusal or "")
    scene.sees_machines = False
    scene.begin()
    assert "may not see machines" in (scene.look().refusal or "")


FIELDS: dict[str, Any] = {
    "labels": {"team": "streams"},
    "annotations": {"example.com/note": "yes"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": KEY, "whenUnsatisfiable": "ScheduleAnyway"}],
    "priorityClassName": "high",
    "imagePullSecrets": [{"name": "pull"}],
    "terminationGracePeriodSeconds": 600,
    "securityContext": {"fsGroup": 2000, "supplementalGroups": [3000]},
    "volumes": [{"name": "plugins", "configMap": {"name": "plugins"}}],
    "volumeMounts": [{"name": "plugins", "mountPath": "/opt/plugins", "readOnly": True}],
}


def test_a_pod_has_what_its_pool_asks_for() -> None:
    scene = Scene(main(nodePools=[pool(pod=FIELDS)]))
    scene.start()
    found = scene.api.one("Pod", "main-nodes-0-0")
    assert found["metadata"]["labels"]["team"] == "streams"
    assert found["metadata"]["annotations"]["example.com/note"] == "yes"
    for name in ("nodeSelector", "tolerations", "topologySpreadConstraints", "priorityClassName", "imagePullSecrets"):
        assert found["spec"][name] == FIELDS[name]
    assert found["spec"]["affinity"].keys() == {"nodeAffinity", "podAntiAffinity"}
    assert found["spec"]["terminationGracePeriodSeconds"] == 600
    context = found["spec"]["securityContext"]
    assert (context["fsGroup"], context["supplementalGroups"], context["runAsNonRoot"]) == (2000, [3000], True)
    assert found["spec"]["volumes"][-1] == FIELDS["volumes"][0]
    (broker,), (format_,) = found["spec"]["containers"], found["spec"]["initContainers"]
    assert broker["volumeMounts"][-1] == FIELDS["volumeMounts"][0]
    assert "plugins" not in {mount["name"] for mount in format_["volumeMounts"]}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_of_the_pods_restarts_them_and_is_what_the_resource_asks_for(name: str) -> None:
    scene = Scene(main(nodePools=[pool()]))
    before = scene.start().wanted[0].fingerprint
    scene.wanted = main(nodePools=[pool(pod={name: FIELDS[name]})])
    view = scene.look()
    assert view.wanted[0].fingerprint != before
    assert view.seen[0].changed == ("pod of spec.nodePools[nodes]",)
    assert not view.seen[0].is_as_asked, "another version of the operator has not done it"


def test_pods_that_kubernetes_does_not_take_are_not_begun() -> None:
    scene = Scene(main(nodePools=[pool()]))
    scene.start()
    tried = len(scene.api.rehearsed)
    assert tried == 1, "a pool is tried once"
    scene.wanted = main(nodePools=[pool(pod={"tolerations": [{"operator": "Never"}]})])
    scene.api.rejected = ApiError("spec.template.spec.tolerations[0].operator: Unsupported value", 422)
    before = len(scene.api.writes)
    refusal = scene.look().refusal or ""
    assert 'nodePools "nodes": Kubernetes does not take its pods: spec.template.spec.tolerations[0].operator' in refusal
    scene.look()
    assert (len(scene.api.rehearsed), len(scene.api.writes)) == (tried + 1, before)
    scene.api.rejected = None
    assert scene.look().refusal, "the API server is asked again after a while only"
    scene.seconds += 10
    assert scene.look().refusal is None


def test_an_api_server_that_does_not_answer_has_not_refused() -> None:
    scene = Scene(main(nodePools=[pool()]))
    scene.api.rejected = ApiError("the API server does not answer")
    with pytest.raises(ApiError):
        scene.look()


@pytest.mark.parametrize("status", [400, 403, 422, 500, 503])
def test_any_answer_but_yes_to_a_dry_run_is_a_refusal_of_the_pool(status: int) -> None:
    scene = Scene(main(nodePools=[pool()]))
    view = scene.start()
    scene.wanted = main(nodePools=[pool(pod={"priorityClassName": "nope"})])
    scene.api.not_admitted = ApiError("no PriorityClass with name nope was found", status)
    refused = scene.look()
    assert 'nodePools "nodes": Kubernetes does not take its pods: no PriorityClass' in (refused.refusal or "")
    assert (refused.bootstrap, refused.metrics) == (view.bootstrap, view.metrics), "its brokers are asked all the same"
    assert refused.bootstrap


def test_a_pod_is_not_taken_down_for_one_that_is_not_admitted_any_more() -> None:
    scene = Scene(main(nodePools=[pool()]))
    scene.start()
    scene.wanted = main(nodePools=[pool(pod={"priorityClassName": "high"})])
    assert scene.look().refusal is None
    scene.api.not_admitted = ApiError("no PriorityClass with name high was found", 403)
    before = len(scene.api.writes)
    with pytest.raises(PlatformUnavailableError, match="no PriorityClass with name high"):
        scene.do(RestartNode(0, "its pod has changed"))
    assert not [write for write in scene.api.writes[before:] if "PersistentVolumeClaim" not in write]
    assert "no PriorityClass" in (scene.look().refusal or "")


QUOTA = 'pods "x" is forbidden: exceeded quota: q, requested: {}, used: {}, limited: {}'
PRESENT = {"spec": {"containers": [{"resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}}}]}}


@pytest.mark.parametrize(
    ("words", "fits"),
    [
        (QUOTA.format("pods=1", "pods=3", "pods=3"), True),
        (QUOTA.format("pods=1,requests.cpu=500m", "pods=3,requests.cpu=1500m", "pods=3,requests.cpu=1500m"), True),
        (QUOTA.format("requests.cpu=2", "requests.cpu=1500m", "requests.cpu=2"), False),
        (QUOTA.format("limits.memory=1Gi", "limits.memory=3Gi", "limits.memory=3Gi"), True),
        (QUOTA.format("cpu=600m", "cpu=1", "cpu=1"), False),
        (QUOTA.format("requests.storage=many", "requests.storage=1", "requests.storage=1"), False),
        ("no PriorityClass with name nope was found", False),
    ],
)
def test_a_quota_counts_the_pod_that_the_new_one_takes_the_place_of(words: str, fits: bool) -> None:
    assert fits_in_place_of(words, PRESENT) == fits
    assert not fits_in_place_of(words, None)


def test_a_plan_says_what_the_api_server_would_refuse() -> None:
    asked: list[Any] = []

    def refuse(pod: Any) -> None:
        asked.append(pod)
        raise KubernetesError(*answer)

    server = cast("ApiServer", Bag(objects_of=lambda *_: [], machines=list, try_pod=refuse))
    answer = ("no PriorityClass with name nope was found", 403)
    wanted = main(nodePools=[pool(pod={"priorityClassName": "nope"})])
    view, doubt = foreseen(server, wanted, None)
    assert 'nodePools "nodes": Kubernetes does not take its pods: no PriorityClass' in (view.refusal or "")
    assert (doubt, len(asked), asked[0]["spec"]["priorityClassName"]) == ("", 1, "nope")
    answer = ('pods is forbidden: User "x" cannot create resource "pods"', 403)
    view, doubt = foreseen(server, wanted, None)
    assert view.refusal is None
    assert "whether Kubernetes takes the pods, as it cannot be asked" in doubt
