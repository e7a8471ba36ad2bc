"""Pods of which nothing ever ran: a cluster that could not start is mended by changing what is in its way."""

from typing import Any

import pytest

from kavka_operator.domain.plan import RestartNode
from kavka_operator.reconcile.cluster import reconcile
from tests.unit.operator.fakes import NOW
from tests.unit.operator.pods import SIZED, Scene, main

UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
FORMATS = {"initContainerStatuses": [{"name": "format", "state": {"running": {}}}]}


@pytest.mark.parametrize(
    ("status", "has_begun"),
    [
        ({}, False),
        (UNSCHEDULABLE, False),
        ({"containerStatuses": [{"name": "broker", "state": {"waiting": {"reason": "PodInitializing"}}}]}, False),
        (FORMATS, True),
        ({"containerStatuses": [{"name": "broker", "state": {"running": {}}, "started": False}]}, True),
        ({"containerStatuses": [{"name": "broker", "restartCount": 1, "state": {"waiting": {}}}]}, True),
    ],
)
def test_a_pod_that_never_ran_has_nothing_to_lose(status: dict[str, Any], has_begun: bool) -> None:
    scene = Scene(main(replicas=1))
    scene.start()
    scene.api.say("main-nodes-0-0", **status)
    assert scene.look().seen[0].has_begun == has_begun
    del scene.api.objects["Pod", "main-nodes-0-0"]
    assert not scene.look().seen[0].has_begun, "nor has a node whose pod cannot be made"


def test_a_cluster_whose_pod_could_never_run_gets_what_mends_it() -> None:
    asked = [{"name": "nodes", "storage": SIZED, "resources": {"requests": {"cpu": "64"}}}]
    scene = Scene(main(nodePools=asked))
    scene.start()
    scene.api.say("main-nodes-0-0", **UNSCHEDULABLE)
    asked[0]["resources"] = {"requests": {"cpu": "50m"}}
    scene.wanted = main(nodePools=asked)
    view = scene.look()
    plan = reconcile(scene.wanted, view.wanted, view.seen, None, None, NOW, view.volumes)
    assert [action.node for action in plan.actions if isinstance(action, RestartNode)] == [0]
    scene.do(*[action for action in plan.actions if isinstance(action, RestartNode)])
    (container,) = scene.api.one("Pod", "main-nodes-0-0")["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "50m"}}
