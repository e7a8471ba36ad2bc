"""Nodes as pods: what is made, in which order, and what is left alone."""

from copy import deepcopy
from itertools import count
from typing import Any

import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.plan import GrowVolume, RestartNode, StartNode
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.kubernetes.live.api import ApiError
from kavka_operator.platform.kubernetes.objects import settings, spec_hash
from kavka_operator.platform.kubernetes.objects.names import ASKED, CLUSTER, DIRECTORY_ID, FINGERPRINT, NODE_ID
from kavka_operator.platform.kubernetes.observe.node_objects import STORAGE_CLASS
from kavka_operator.reconcile.rollout.restart import RESTART
from tests.unit.operator.pods import RUNS, SIZED, Died, Scene, main


def test_a_cluster_is_formed_by_ids_that_were_written_down_before() -> None:
    scene = Scene()
    view = scene.start()
    assert scene.api.names("StatefulSet") == ["main-nodes-0", "main-nodes-1", "main-nodes-2"]
    assert scene.api.names("PersistentVolumeClaim") == [f"data-main-nodes-{number}" for number in range(3)]
    assert scene.api.names("Service") == ["main-bootstrap", "main-nodes"]
    assert {node.state for node in view.seen.values()} == {"Running"}
    hosts = [f"main-nodes-{number}-0.main-nodes.default.svc" for number in range(3)]
    assert view.bootstrap == ",".join(f"{host}:9092" for host in hosts)
    writes = scene.api.writes
    sets = [place for place, words in enumerate(writes) if "StatefulSet" in words]
    drawn = [words for words in writes[: sets[0]] if "PersistentVolumeClaim" in words]
    assert len(drawn) == 6, "each has an id, and then who the first controllers are"
    (initial,) = {word for number in range(3) for word in scene.arguments(number) if word.startswith("--initial")}
    ids = [
        scene.api.one("PersistentVolumeClaim", f"data-main-nodes-{number}")["metadata"]["annotations"][
            "kavka.dev/directory-id"
        ]
        for number in range(3)
    ]
    assert initial == "--initial-controllers=" + ",".join(
        f"{number}@{hosts[number]}:10092:{ids[number]}" for number in range(3)
    )
    for number in range(3):
        assert f"--directory-id=/var/lib/kavka/data={ids[number]}" in scene.arguments(number)


def test_at_rest_nothing_is_written() -> None:
    scene = Scene()
    scene.start()
    before = len(scene.api.writes)
    for _ in range(3):
        scene.look()
    scene.begin()
    view = scene.look()
    assert len(scene.api.writes) == before
    assert all(node.fingerprint == view.seen[node.id].fingerprint for node in view.wanted)


def test_an_operator_that_dies_after_any_write_is_followed_by_one_that_forms_the_same_cluster() -> None:
    whole = Scene()
    whole.start()
    for last in range(len(whole.api.writes)):
        scene = Scene()
        scene.api.last = last
        with pytest.raises(Died):
            scene.start()
        scene.api.last = None
        scene.begin()
        scene.start()
        named = [word for number in range(3) for word in scene.arguments(number)]
        assert len({word for word in named if word.startswith("--cluster-id")}) == 1
        assert len({word for word in named if word.startswith("--initial-controllers")}) == 1
        (initial,) = {word for word in named if word.startswith("--initial-controllers")}
        for word in (word for word in named if word.startswith("--directory-id")):
            assert word.rpartition("=")[2] in initial


def test_a_deleted_cluster_that_is_applied_again_finds_what_its_volumes_keep() -> None:
    scene = Scene()
    scene.start()
    before = [scene.arguments(number) for number in range(3)]
    for kind in ("StatefulSet", "Service", "NetworkPolicy"):
        for name in scene.api.names(kind):
            del scene.api.objects[kind, name]
    scene.api.control()
    scene.wanted = main(uid="u2")
    scene.begin()
    scene.start()
    assert [scene.arguments(number) for number in range(3)] == before


def test_ids_of_pools_are_found_on_volumes() -> None:
    pools = [{"name": name, "storage": SIZED} for name in ("front", "back")]
    scene = Scene(main(nodePools=pools))
    assert [node.id for node in scene.start().wanted] == [0, 100]
    scene.begin()
    scene.wanted = main(nodePools=[{"name": "new", "storage": SIZED}, *reversed(pools)])
    view = scene.look()
    assert [(node.pool, node.id) for node in view.wanted] == [("front", 0), ("back", 100), ("new", 200)]
    assert view.pools == {"front": 0, "back": 100, "new": 200}


def test_a_pod_that_is_evicted_comes_back_with_what_it_had() -> None:
    scene = Scene()
    scene.start()
    before = scene.api.one("Pod", "main-nodes-1-0")["spec"]
    scene.wanted = main(image="kavka/broker:2", config={"num.io.threads": "4"})
    view = scene.look()
    assert all(node.fingerprint != view.seen[node.id].fingerprint for node in view.wanted)
    assert view.seen[1].changed == ("num.io.threads", "spec.image")
    del scene.api.objects["Pod", "main-nodes-1-0"]
    scene.api.control()
    after = scene.api.one("Pod", "main-nodes-1-0")["spec"]
    (was,), (formatting,) = before.pop("initContainers"), after.pop("initContainers")
    assert after == before
    assert formatting.pop("env") == [{"name": "KAVKA_FORMATTED_BEFORE", "value": "/var/lib/kavka/data"}]
    assert formatting == was


def test_a_restart_that_is_asked_for_is_a_roll_of_all_nodes_once() -> None:
    scene = Scene()
    scene.start()
    asked = main(annotations={RESTART: "2026-11-28"})
    scene.wanted = asked
    view = scene.look()
    assert {node.changed for node in view.seen.values()} == {(f"the annotation {RESTART}",)}
    assert not any(node.is_as_asked for node in view.seen.values()), "so that nobody has to approve it"
    for number in range(3):
        scene.do(RestartNode(number, "asked for"))
        scene.api.say(f"main-nodes-{number}-0", **RUNS)
    view = scene.look()
    assert all(node.fingerprint == view.seen[node.id].fingerprint for node in view.wanted)
    assert {node.changed for node in view.seen.values()} == {()}
    scene.wanted = main(annotations={RESTART: "2026-11-29"})
    assert {node.changed for node in scene.look().seen.values()} == {(f"the annotation {RESTART}",)}


def test_other_resources_are_told_by_the_field_that_asks_for_them() -> None:
    def wanting(cpu: str) -> KafkaCluster:
        resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
        return main(nodePools=[{"name": "nodes", "replicas": 1, "storage": SIZED, "resources": resources}])

    scene = Scene(wanting("500m"))
    scene.start()
    scene.wanted = wanting("0.5")
    view = scene.look()
    assert (view.seen[0].changed, view.seen[0].fingerprint) == ((), view.wanted[0].fingerprint), "the same amount"
    scene.wanted = wanting("2")
    assert scene.look().seen[0].changed == ("resources of spec.nodePools[nodes]",)


def test_a_node_of_a_version_that_knew_amounts_by_their_spelling_is_as_it_is_wanted() -> None:
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    scene = Scene(main(nodePools=[{"name": "nodes", "replicas": 1, "storage": SIZED, "resources": resources}]))
    view = scene.start()
    (layout,) = scene.host.layouts.values()
    pod = deepcopy(scene.api.one("Pod", "main-nodes-0-0"))
    former = settings.fingerprint_by_spelling(layout)
    assert former != settings.fingerprint(layout)
    pod["metadata"]["annotations"] |= {
        FINGERPRINT: former,
        ASKED: spec_hash.hash_layout(layout, (), layout.node.pool.resources),
    }
    scene.api.place(pod)
    view = scene.look()
    assert view.seen[0].fingerprint == view.wanted[0].fingerprint
    assert (view.seen[0].changed, view.seen[0].is_as_asked) == ((), True)


def test_a_volume_that_was_deleted_and_lasts_until_its_pod_ends_is_going() -> None:
    scene = Scene()
    scene.start()
    claim = deepcopy(scene.api.one("PersistentVolumeClaim", "data-main-nodes-1"))
    claim["metadata"]["deletionTimestamp"] = "2026-11-23T20:00:00Z"
    scene.api.place(claim)
    seen = scene.look().seen
    assert {number: node.going for number, node in seen.items()} == {0: (), 1: ("data-main-nodes-1",), 2: ()}
    assert seen[1].state == "Running"


def test_a_restart_changes_one_pod() -> None:
    scene = Scene()
    scene.start()
    scene.wanted = main(image="kavka/broker:2")
    scene.look()
    before = len(scene.api.writes)
    scene.do(RestartNode(1, "spec.image has changed"))
    assert scene.api.writes[before:] == ["put StatefulSet main-nodes-1", "delete Pod main-nodes-1-0"]
    scene.run()
    view = scene.look()
    assert [view.seen[node.id].fingerprint == node.fingerprint for node in view.wanted] == [False, True, False]
    assert scene.api.one("Pod", "main-nodes-1-0")["spec"]["containers"][0]["image"] == "kavka/broker:2"


def test_a_pod_is_not_deleted_while_it_would_be_made_again_of_the_template_of_before() -> None:
    scene = Scene()
    scene.start()
    scene.wanted = main(image="kavka/broker:2")
    scene.look()
    scene.api.is_slow = True
    before = len(scene.api.writes)
    scene.do(RestartNode(1, "spec.image has changed"))
    assert scene.api.writes[before:] == ["put StatefulSet main-nodes-1"]
    scene.api.is_slow = False
    scene.look()
    scene.do(RestartNode(1, "spec.image has changed"))
    assert scene.api.one("Pod", "main-nodes-1-0")["spec"]["containers"][0]["image"] == "kavka/broker:2"


def test_no_pod_formats_a_new_volume_by_the_id_of_the_lost_one() -> None:
    scene = Scene()
    scene.start()
    del scene.api.objects["PersistentVolumeClaim", "data-main-nodes-1"]
    scene.look()
    scene.api.is_slow = True
    before = len(scene.api.writes)
    scene.do(StartNode(1))
    assert scene.api.writes[before:] == ["put StatefulSet main-nodes-1"]
    assert ("PersistentVolumeClaim", "data-main-nodes-1") not in scene.api.objects
    told = scene.api.one("StatefulSet", "main-nodes-1")["spec"]
    scene.api.is_slow = False
    scene.api.control()  # it hears of the template later than this was waited for, and would of the next one
    scene.api.is_slow = True
    scene.look()
    scene.do(StartNode(1))
    assert scene.api.one("StatefulSet", "main-nodes-1")["spec"] == told, "the template that was heard of"
    kept = scene.api.one("PersistentVolumeClaim", "data-main-nodes-1")["metadata"]["annotations"][DIRECTORY_ID]
    assert kept in str(scene.api.one("Pod", "main-nodes-1-0")["spec"]["initContainers"])


def test_a_template_that_was_told_and_whose_pod_still_runs_as_before_has_changed_nothing() -> None:
    scene = Scene()
    scene.start()
    scene.wanted = main(image="kavka/broker:2")
    scene.look()
    scene.api.last = len(scene.api.writes) + 1
    with pytest.raises(Died):
        scene.do(RestartNode(1, "spec.image has changed"))
    scene.api.last = None
    scene.begin()
    view = scene.look()
    assert view.seen[1].fingerprint != view.wanted[1].fingerprint


def test_a_pod_that_was_made_again_since_the_look_is_left_alone() -> None:
    scene = Scene()
    scene.start()
    scene.wanted = main(image="kavka/broker:2")
    scene.look()
    del scene.api.objects["Pod", "main-nodes-1-0"]
    scene.api.control()
    before = len(scene.api.writes)
    scene.do(RestartNode(1, "spec.image has changed"))
    assert scene.api.writes[before:] == []


def test_a_new_rendering_restarts_nothing() -> None:
    """Pods that another version of the operator has made look otherwise."""
    scene = Scene()
    scene.start()
    for name in scene.api.names("Pod"):
        (container,) = scene.api.one("Pod", name)["spec"]["containers"]
        container["startupProbe"]["failureThreshold"] = 60
        container["volumeMounts"][0]["mountPath"] = "/data"
    scene.begin(image="kavka/broker:next")
    view = scene.look()
    assert all(node.fingerprint == view.seen[node.id].fingerprint for node in view.wanted)


def test_more_nodes_join_what_is_there() -> None:
    scene = Scene()
    scene.start()
    scene.wanted = main(4)
    scene.look()
    scene.do(StartNode(3))
    assert "--no-initial-controllers" in scene.arguments(3)
    assert scene.arguments(3)[3] == scene.arguments(0)[3]


def test_a_volume_that_is_gone_is_replaced_by_one_that_never_voted() -> None:
    scene = Scene()
    scene.start()
    scene.wanted = main(config={"num.io.threads": "4"})
    fingerprint = scene.look().seen[1].fingerprint
    former = scene.arguments(1)
    del scene.api.objects["PersistentVolumeClaim", "data-main-nodes-1"]
    scene.api.say("main-nodes-1-0", phase="Pending")
    node = scene.look().seen[1]
    assert (node.state, node.message) == ("Stopped", "the volume data is gone")
    assert all(found in "".join(former) for found in node.lost)
    assert len(node.lost) == 1
    before = len(scene.api.writes)
    scene.do(StartNode(1))
    assert scene.api.writes[before:] == [
        "put StatefulSet main-nodes-1",
        "delete Pod main-nodes-1-0",
        "put PersistentVolumeClaim data-main-nodes-1",
    ]
    assert "--no-initial-controllers" in scene.arguments(1)
    kept = scene.api.one("PersistentVolumeClaim", "data-main-nodes-1")["metadata"]["annotations"]
    assert f"--directory-id=/var/lib/kavka/data={kept['kavka.dev/directory-id']}" in scene.arguments(1)
    assert kept["kavka.dev/directory-id"] not in "".join(former)
    assert scene.look().seen[1].fingerprint == fingerprint, "a lost volume brings no settings that nobody approved"


def test_where_all_volumes_are_gone_no_cluster_is_begun_by_itself() -> None:
    scene = Scene()
    scene.start()
    for name in scene.api.names("PersistentVolumeClaim"):
        del scene.api.objects["PersistentVolumeClaim", name]
        scene.api.say(f"{name.removeprefix('data-')}-0", phase="Pending")
    scene.look()
    with pytest.raises(PlatformUnavailableError, match="begins a new cluster"):
        scene.do(StartNode(0))


@pytest.mark.parametrize(
    ("kind", "name"), [("Service", "main-nodes"), ("StatefulSet", "main-nodes-0"), ("NetworkPolicy", "main-nodes")]
)
def test_what_belongs_to_somebody_else_is_not_taken_over(kind: str, name: str) -> None:
    scene = Scene()
    scene.api.place({"kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": {"theirs": True}})
    try:
        words = scene.start().refusal or ""
    except PlatformUnavailableError as error:
        words = str(error)
    assert f'{kind} "{name}" is there and is not of this KafkaCluster' in words
    assert scene.api.one(kind, name)["spec"] == {"theirs": True}


def test_what_somebody_changes_of_a_service_is_put_back() -> None:
    scene = Scene()
    scene.start()
    scene.api.one("Service", "main-nodes")["spec"]["publishNotReadyAddresses"] = False
    scene.look()
    assert scene.api.one("Service", "main-nodes")["spec"]["publishNotReadyAddresses"] is True


def test_volumes_grow_and_never_shrink() -> None:
    scene = Scene()
    scene.start()

    def sized(size: str) -> None:
        storage = {"volumes": [{"name": "data", "size": size}]}
        scene.wanted = main(nodePools=[{"name": "nodes", "replicas": 3, "storage": storage}])

    sized("2Gi")
    grown = {number: [volume.grows_to for volume in found] for number, found in scene.look().volumes.items()}
    assert grown == {number: [2 << 30] for number in range(3)}
    scene.do(GrowVolume(0, "data", 2 << 30))
    claim = scene.api.one("PersistentVolumeClaim", "data-main-nodes-0")
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"
    assert claim["metadata"]["annotations"]["kavka.dev/initial-controllers"]
    claim["spec"]["resources"]["requests"]["storage"] = "5Gi"
    assert [volume.grows_to for volume in scene.look().volumes[0]] == [None]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"nodePools": [{"name": "nodes"}]}, 'volume "data" has no size'),
        ({"nodePools": [{"name": "nodes", "storage": SIZED, "topologyKey": "zone"}]}, "has the label zone"),
    ],
)
def test_what_cannot_be_run_names_the_field(spec: dict[str, Any], words: str) -> None:
    view = Scene(main(**spec)).look()
    assert words in (view.refusal or "")


def test_a_cluster_needs_an_image() -> None:
    scene = Scene()
    scene.begin(image=None)
    assert "spec.image" in (scene.look().refusal or "")
    scene.wanted = main(image="kavka/broker:2")
    assert scene.look().refusal is None


def test_what_the_api_server_refuses_is_said_in_its_words() -> None:
    scene = Scene()
    scene.look()
    scene.api.refuse = ApiError("exceeded quota: pods", 403)
    with pytest.raises(PlatformUnavailableError, match="cannot start node 0: exceeded quota: pods"):
        scene.do(StartNode(0))


@pytest.mark.parametrize(
    ("status", "state", "words"),
    [
        ({}, "Starting", ""),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
                ]
            },
            "Starting",
            "Unschedulable: no room",
        ),
        (
            {
                "initContainerStatuses": [
                    {"name": "format", "state": {"waiting": {"reason": "ErrImagePull", "message": "x"}}}
                ]
            },
            "Failed",
            "ErrImagePull: x",
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "broker",
                        "restartCount": 3,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"exitCode": 2, "message": "one\nkavka-broker: bad\n"}},
                    }
                ]
            },
            "Failed",
            "ended with code 2: kavka-broker: bad",
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "broker",
                        "restartCount": 1,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                    }
                ]
            },
            "Restarting",
            "ended with code 137: OOMKilled",
        ),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "Restarting", "Evicted: low on memory"),
        (RUNS, "Running", ""),
    ],
)
def test_a_pod_tells_how_its_node_is(status: dict[str, object], state: str, words: str) -> None:
    scene = Scene()
    scene.start()
    scene.api.say("main-nodes-0-0", **status)
    node = scene.look().seen[0]
    assert (node.state, node.message) == (state, words)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"storageClassName": "fast"},
            f'waits for a volume of StorageClass "fast" ({STORAGE_CLASS}); make one of this name',
        ),
        ({}, f"names no StorageClass ({STORAGE_CLASS}), and none is the default; make one the default"),
    ],
)
def test_a_node_that_waits_for_a_volume_names_the_claim_and_its_class(asked: dict[str, str], words: str) -> None:
    scene = Scene()
    scene.start()
    said = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}
    scene.api.say("main-nodes-0-0", conditions=[told])
    claim = scene.api.one("PersistentVolumeClaim", "data-main-nodes-0")
    claim["spec"].pop("storageClassName", None)
    claim["spec"].update(asked)
    assert scene.look().seen[0].message == f"Unschedulable: {said}", "its claim is bound"
    claim["status"] = {"phase": "Pending"}
    assert scene.look().seen[0].message.startswith(f"Unschedulable: {said}; claim data-main-nodes-0 {words}")


def test_a_pod_on_its_way_out_is_stopping() -> None:
    scene = Scene()
    scene.start()
    scene.api.one("Pod", "main-nodes-0-0")["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    assert scene.look().seen[0].state == "Stopping"


def test_what_was_listed_is_believed_while_nothing_is_heard() -> None:
    scene = Scene()
    scene.start()
    scene.heard = iter([7] * 10)  # type: ignore[assignment]
    scene.look()
    scene.api.say("main-nodes-0-0", phase="Pending")
    assert scene.look().seen[0].state == "Running"
    scene.heard = count(8)
    assert scene.look().seen[0].state == "Starting"


def put_on(scene: Scene, pod: str, machine: str) -> None:
    """Let a pod be on a machine."""
    found = scene.api.objects["Pod", pod]
    scene.api.place({**found, "spec": {**found["spec"], "nodeName": machine}})


def test_the_nodes_of_a_cordoned_machine_are_asked_for() -> None:
    scene = Scene()
    assert scene.start().asked == frozenset()
    for number in range(3):
        put_on(scene, f"main-nodes-{number}-0", f"machine-{number}")
    scene.api.empties = {"machine-2"}
    assert scene.look().asked == {2}
    scene.sees_machines = False
    scene.begin()
    assert scene.look().asked == frozenset(), "without the right nobody asks"


def test_a_budget_for_each_node_is_open_for_those_that_may_go() -> None:
    scene = Scene()
    scene.start()
    assert scene.host.allow(scene.wanted, frozenset({1}))
    found = [scene.api.one("PodDisruptionBudget", f"main-nodes-{number}")["spec"] for number in range(3)]
    assert [spec["maxUnavailable"] for spec in found] == [0, 1, 0]
    before = len(scene.api.writes)
    assert not scene.host.allow(scene.wanted, frozenset({1}))
    assert len(scene.api.writes) == before
    assert scene.host.allow(scene.wanted, frozenset({0}))
    order = [scene.api.one("PodDisruptionBudget", name)["spec"]["maxUnavailable"] for name in ("main-nodes-0",)]
    assert (len(scene.api.writes) - before, order) == (2, [1])
    assert "main-nodes-1" in scene.api.writes[before], "what closes is written first"


def test_an_operator_that_cannot_list_the_nodes_closes_the_budgets_that_it_finds() -> None:
    scene = Scene()
    scene.start()
    scene.host.allow(scene.wanted, frozenset({1}))
    host = scene.begin()
    host.allow(scene.wanted, frozenset())
    found = [scene.api.one("PodDisruptionBudget", f"main-nodes-{number}")["spec"] for number in range(3)]
    assert [spec["maxUnavailable"] for spec in found] == [0, 0, 0]
    assert found[1]["selector"] == {"matchLabels": {CLUSTER: "main", NODE_ID: "1"}}
