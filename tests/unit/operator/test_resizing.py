"""Other processor and memory for brokers that run: in place where Kubernetes does that, otherwise by a restart."""

from datetime import UTC, datetime

import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.observed import SeenBroker, SeenCluster, SeenNode, SeenQuorum, Survey, WantedNode
from kavka_operator.domain.plan import ResizeNode, RestartNode
from kavka_operator.platform.kubernetes.live.api import ApiError
from kavka_operator.platform.kubernetes.objects.names import BESIDES_RESOURCES
from kavka_operator.reconcile.cluster import reconcile
from tests.unit.operator.fakes import cluster
from tests.unit.operator.pods import RUNS, SIZED, Died, Scene, main

NOW = datetime(2026, 11, 25, tzinfo=UTC)
POD = "main-nodes-0-0"
ALONE = "resources of spec.nodePools[nodes]"


def wanting(cpu: str = "1", /, **resources: object) -> KafkaCluster:
    asked = {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"memory": "1Gi"}, **resources}
    return main(nodePools=[{"name": "nodes", "replicas": 1, "storage": SIZED, "resources": asked}])


def begun() -> Scene:
    scene = Scene(wanting())
    scene.start()
    return scene


def test_a_broker_that_runs_gets_other_amounts_and_its_next_pod_too() -> None:
    scene = begun()
    uid = scene.api.one("Pod", POD)["metadata"]["uid"]
    before = len(scene.api.writes)
    scene.wanted = wanting("2")
    view = scene.look()
    assert (view.seen[0].is_in_place, view.seen[0].changed) == (True, (ALONE,))
    scene.do(ResizeNode(0, "resources have changed"))
    assert scene.api.writes[before:] == [f"resize Pod {POD}", "put StatefulSet main-nodes-0", f"mark Pod {POD}"]
    (container,) = scene.api.one("Pod", POD)["spec"]["containers"]
    assert container["resources"]["requests"]["cpu"] == "2"
    view = scene.look()
    assert view.seen[0].fingerprint == view.wanted[0].fingerprint
    assert (view.seen[0].is_in_place, view.seen[0].is_as_asked) == (False, True)
    assert scene.api.one("Pod", POD)["metadata"]["uid"] == uid
    template = scene.api.one("StatefulSet", "main-nodes-0")["spec"]["template"]
    assert template["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"


@pytest.mark.parametrize("last", range(3))
def test_an_operator_that_dies_in_between_is_followed_by_one_that_ends_it(last: int) -> None:
    scene = begun()
    scene.wanted = wanting("2")
    scene.look()
    scene.api.last = len(scene.api.writes) + last
    with pytest.raises(Died):
        scene.do(ResizeNode(0, "resources have changed"))
    scene.api.last = None
    scene.begin()
    assert scene.look().seen[0].is_in_place
    scene.do(ResizeNode(0, "resources have changed"))
    view = scene.look()
    assert view.seen[0].fingerprint == view.wanted[0].fingerprint


def test_what_is_taken_back_is_given_back() -> None:
    scene = begun()
    scene.wanted = wanting("2")
    scene.look()
    scene.do(ResizeNode(0, "resources have changed"))
    scene.wanted = wanting("1")
    assert scene.look().seen[0].is_in_place
    scene.do(ResizeNode(0, "resources have changed"))
    view = scene.look()
    assert view.seen[0].fingerprint == view.wanted[0].fingerprint


def test_what_kubernetes_refuses_is_a_restart_that_says_so() -> None:
    scene = begun()
    scene.wanted = wanting("2")
    scene.look()
    before = len(scene.api.writes)
    scene.api.rejected = ApiError("Pod QOS Class may not change", 422)
    scene.do(ResizeNode(0, "resources have changed"))
    assert scene.api.writes[before:] == [], "what a pod does not take is in no template"
    scene.api.rejected = None
    seen = scene.look().seen[0]
    assert (seen.is_in_place, seen.changed) == (False, (f"{ALONE} (by a restart: Pod QOS Class may not change)",))
    scene.wanted = wanting("3")
    assert scene.look().seen[0].is_in_place, "another wish is another question"


def test_an_older_kubernetes_restarts() -> None:
    scene = begun()
    scene.api.resizes = False
    scene.wanted = wanting("2")
    seen = scene.look().seen[0]
    words = "(by a restart: this Kubernetes changes no resources of pods that run)"
    assert (seen.is_in_place, seen.changed) == (False, (f"{ALONE} {words}",))


@pytest.mark.parametrize(
    "resources",
    [{"limits": {"memory": "1Gi", "cpu": "4"}}, {"limits": {}}, {"requests": {"cpu": "1", "memory": "1Gi", "x": "1"}}],
)
def test_an_amount_that_comes_or_goes_is_a_restart(resources: dict[str, object]) -> None:
    scene = begun()
    scene.wanted = wanting("1", **resources)
    seen = scene.look().seen[0]
    words = "(by a restart: Kubernetes changes amounts in place, and adds or takes away none)"
    assert (seen.is_in_place, seen.changed) == (False, (f"{ALONE} {words}",))


def test_another_setting_beside_it_is_a_restart() -> None:
    scene = begun()
    asked = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    pool = {"name": "nodes", "replicas": 1, "storage": SIZED, "resources": asked}
    scene.wanted = main(nodePools=[pool], config={"num.io.threads": "4"})
    seen = scene.look().seen[0]
    assert (seen.is_in_place, seen.changed) == (False, ("num.io.threads", ALONE))


def test_a_pod_of_an_earlier_version_and_one_that_does_not_run_are_restarted() -> None:
    scene = begun()
    scene.wanted = wanting("2")
    pod = scene.api.one("Pod", POD)
    mark = pod["metadata"]["annotations"].pop(BESIDES_RESOURCES)
    assert scene.look().seen[0].changed == (f"{ALONE} (by a restart: its pod was made by an earlier version)",)
    pod["metadata"]["annotations"][BESIDES_RESOURCES] = mark
    scene.api.say(POD, phase="Pending")
    assert scene.look().seen[0].changed == (f"{ALONE} (by a restart: its broker does not run)",)


def test_a_machine_that_cannot_yet_is_told() -> None:
    scene = begun()
    said = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "not enough  cpu"}
    scene.api.say(POD, **RUNS, conditions=[said])
    assert scene.look().seen[0].resizing == "Deferred: not enough cpu"
    scene.api.say(POD, **RUNS, observedGeneration=1)
    scene.api.one("Pod", POD)["metadata"]["generation"] = 2
    assert scene.look().seen[0].resizing == "its machine has not heard of it yet"
    scene.api.say(POD, **RUNS, observedGeneration=2)
    assert scene.look().seen[0].resizing == ""


NODES = [WantedNode(number, "new", roles=("broker",)) for number in range(3)]
LIVE = SeenCluster("id", 0, {number: SeenBroker(number, "x") for number in range(3)})
SURVEY = Survey((), SeenQuorum(0, (0,)))


def step(*seen: SeenNode, **rollout: object) -> tuple[tuple[object, ...], list[tuple[str, str]]]:
    plan = reconcile(cluster(rollout=rollout), NODES, {node.id: node for node in seen}, LIVE, SURVEY, NOW)
    return plan.actions, [(word.type, word.reason) for word in plan.words]


def node(number: int, fingerprint: str = "old", *, resizing: str = "") -> SeenNode:
    is_old = fingerprint == "old"
    return SeenNode(number, "Running", fingerprint, changed=("resources",), is_in_place=is_old, resizing=resizing)


def test_one_node_after_the_other_whatever_holds_a_roll() -> None:
    action = ResizeNode(0, "resources has changed")
    words = [("Ready", "Resizing"), ("Reconciling", "Resizing")]
    assert step(node(0), node(1), node(2)) == ((action,), words)
    assert step(node(0), node(1), node(2), hold=True, approval="Manual") == ((action,), words)
    assert step(node(0, "new", resizing="Deferred: no room"), node(1), node(2)) == ((), words)
    assert step(node(0, "new"), node(1), node(2))[0] == (ResizeNode(1, "resources has changed"),)
    assert step(*(node(number, "new") for number in range(3))) == ((), [("Ready", "Ready")])


def test_a_machine_without_room_is_a_decision_of_a_person() -> None:
    found = step(node(0, "new", resizing="Infeasible: capacity 2"), node(1), node(2))
    assert found == ((), [("Ready", "ResizeRefused"), ("Stalled", "ResizeRefused")])


@pytest.mark.parametrize("said", ["Infeasible: capacity 2", "Deferred: no room", "its machine has not heard of it yet"])
def test_what_a_machine_did_not_take_is_taken_back(said: str) -> None:
    found = step(node(0, "new"), node(1, "old", resizing=said), node(2, "old"))
    assert found[0] == (ResizeNode(1, "resources has changed"),), "that node first, and no other beside it"


def test_other_nodes_are_restarted_first() -> None:
    other = SeenNode(2, "Running", "old", changed=("num.io.threads",))
    assert step(node(0), node(1), other)[0] == (RestartNode(2, "num.io.threads has changed"),)
