"""Pods of nodes that are no longer wanted, and pods whose StatefulSet is gone: how they are seen, and how they go."""

from typing import Any

import pytest

from kavka_operator.domain.plan import StartNode, StopNode
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.kubernetes.observe import node_objects
from kavka_operator.platform.kubernetes.observe.node_objects import Known
from tests.unit.operator.pods import RUNS, Scene, main


def test_a_node_that_is_not_wanted_goes_and_its_volume_stays() -> None:
    scene = Scene()
    scene.start()
    scene.wanted = main(2)
    view = scene.look()
    assert [(node.id, node.pool, node.roles, node.volumes) for node in view.leaving] == [
        (2, "nodes", ("broker", "controller"), ("data",))
    ]
    scene.do(StopNode(2))
    assert scene.api.names("StatefulSet") == ["main-nodes-0", "main-nodes-1"]
    assert "data-main-nodes-2" in scene.api.names("PersistentVolumeClaim")
    assert 2 not in scene.look().seen


@pytest.mark.parametrize(
    ("metadata", "state"),
    [
        ({}, "Stopped"),  # deleted without its pod: it is made again, and takes the pod
        ({"ownerReferences": [{"kind": "StatefulSet", "uid": "gone"}]}, "Stopping"),
        ({"deletionTimestamp": "2026-11-23T20:00:00Z"}, "Stopping"),
    ],
)
def test_a_pod_without_its_stateful_set_goes_or_is_taken_again(metadata: dict[str, Any], state: str) -> None:
    (node,) = node_objects.seen_nodes(Known(pods={4: {"metadata": metadata}}), {4: ()}).values()
    assert (node.id, node.state) == (4, state)


@pytest.mark.parametrize(
    ("metadata", "status", "state"),
    [
        ({}, RUNS, "Running"),
        ({}, {"phase": "Pending"}, "Starting"),
        ({}, {"phase": "Failed", "reason": "Evicted"}, "Failed"),
        ({"ownerReferences": [{"kind": "StatefulSet", "uid": "gone"}]}, RUNS, "Stopping"),
        ({"deletionTimestamp": "2026-11-23T20:00:00Z"}, RUNS, "Stopping"),
    ],
)
def test_a_pod_without_its_stateful_set_that_is_not_wanted_is_as_it_runs(
    metadata: dict[str, Any], status: dict[str, Any], state: str
) -> None:
    (node,) = node_objects.seen_nodes(Known(pods={4: {"metadata": metadata, "status": status}}), {}).values()
    assert (node.id, node.state) == (4, state)
    assert ("its StatefulSet is gone" in node.message) != ("deletionTimestamp" in metadata)


def orphaned(number: int) -> Scene:
    """Three nodes run, two are wanted, and the StatefulSet of one was deleted without its pod."""
    scene = Scene()
    scene.start()
    scene.wanted = main(2)
    del scene.api.objects["StatefulSet", f"main-nodes-{number}"]
    return scene


def test_a_leaving_node_whose_stateful_set_is_gone_is_emptied_as_it_runs_and_taken_down() -> None:
    scene = orphaned(2)
    view = scene.look()
    assert (view.seen[2].state, [node.id for node in view.leaving]) == ("Running", [2])
    before = len(scene.api.writes)
    scene.do(StopNode(2))
    assert scene.api.writes[before:] == ["delete Pod main-nodes-2-0"]
    assert 2 not in scene.look().seen


def test_a_leaving_node_that_cannot_be_started_is_told() -> None:
    scene = orphaned(2)
    scene.look()
    with pytest.raises(PlatformUnavailableError, match=r"node 2 is not wanted any more.* want it again"):
        scene.do(StartNode(2))
    scene.do(StopNode(2))
    scene.look()
    scene.do(StartNode(2))  # it has gone since that was decided


def test_a_leaving_node_that_lost_its_volume_is_seen_so_and_its_stateful_set_goes() -> None:
    scene = Scene()
    scene.start()
    scene.wanted = main(2)
    del scene.api.objects["PersistentVolumeClaim", "data-main-nodes-2"]
    scene.api.say("main-nodes-2-0", phase="Pending")
    node = scene.look().seen[2]
    assert (node.state, len(node.lost)) == ("Stopped", 1)
    scene.do(StopNode(2))
    assert scene.api.names("StatefulSet") == ["main-nodes-0", "main-nodes-1"]


def test_a_pod_without_its_stateful_set_never_formats_another_volume_by_the_id_of_a_lost_one() -> None:
    scene = Scene()
    scene.start()
    former = scene.look().wanted[1].controller
    assert former is not None
    for key in (("StatefulSet", "main-nodes-1"), ("PersistentVolumeClaim", "data-main-nodes-1")):
        del scene.api.objects[key]
    scene.api.say("main-nodes-1-0", phase="Pending")
    node = scene.look().seen[1]
    assert (node.state, node.lost) == ("Stopped", (former.directory_id,))
    before = len(scene.api.writes)
    scene.do(StartNode(1))
    assert scene.api.writes[before] == "delete Pod main-nodes-1-0"
    assert former.directory_id not in "".join(scene.arguments(1))
    assert "--no-initial-controllers" in scene.arguments(1)


def test_a_leaving_pod_without_its_stateful_set_that_lost_its_volume_is_seen_so() -> None:
    scene = orphaned(2)
    del scene.api.objects["PersistentVolumeClaim", "data-main-nodes-2"]
    scene.api.say("main-nodes-2-0", phase="Pending")
    node = scene.look().seen[2]
    assert (node.state, node.message) == ("Stopped", "its StatefulSet is gone; the volume data is gone")
    assert len(node.lost) == 1
