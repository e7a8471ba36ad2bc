"""Another version of the operator gives nodes other settings: none of them restarts before a person approves it."""

from typing import Any

import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.observed import SeenBroker, SeenCluster, SeenPartition, SeenQuorum, Survey
from kavka_operator.domain.plan import ClusterPlan, RestartNode
from kavka_operator.platform import nodes as platform_nodes
from kavka_operator.platform.kubernetes.objects import settings, spec_hash
from kavka_operator.reconcile.cluster import reconcile
from kavka_operator.reconcile.rollout.roll import APPROVE
from tests.unit.operator.fakes import NOW
from tests.unit.operator.pods import Scene, main

WHOLE = SeenPartition("orders", 0, 0, (0, 1, 2), (0, 1, 2), 2)
LIVE = SeenCluster("id", 0, {number: SeenBroker(number, "a:1") for number in range(3)})


def planned(scene: Scene) -> ClusterPlan:
    view = scene.look()
    places = {node.id: node.controller.directory_id for node in view.wanted if node.controller}
    survey = Survey((WHOLE,), SeenQuorum(0, (0, 1, 2), {1: 0, 2: 0}, places))
    return reconcile(scene.wanted, view.wanted, view.seen, LIVE, survey, NOW)


def restarted(plan: ClusterPlan) -> list[int]:
    return [action.node for action in plan.actions if isinstance(action, RestartNode)]


def pending(plan: ClusterPlan) -> list[str]:
    return [word.reason for word in plan.words if (word.type, word.status) == ("RolloutPending", "True")]


def upgraded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the operator be a version that has other defaults."""
    former = platform_nodes.common_properties

    def common(cluster: KafkaCluster, nodes: Any) -> dict[str, str]:
        return {"num.io.threads": "12", **former(cluster, nodes)}

    monkeypatch.setattr(settings, "common_properties", common)


def test_other_defaults_of_an_operator_wait_for_an_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.start()
    upgraded(monkeypatch)
    scene.begin()
    plan = planned(scene)
    assert (restarted(plan), pending(plan)) == ([], ["OperatorUpgraded"])
    assert any((word.type, word.status) == ("Ready", "True") for word in plan.words)
    assert plan.rollout is not None
    (told,) = (word.message for word in plan.words if word.type == "RolloutPending")
    assert "num.io.threads has changed" in told
    assert f"{APPROVE}={plan.rollout.plan}" in told
    approved = scene.wanted.metadata.replaced({"annotations": {APPROVE: plan.rollout.plan}})
    scene.wanted = scene.wanted.replaced({"metadata": approved})
    assert restarted(planned(scene)) == [1]


def test_what_the_resource_asks_for_besides_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.start()
    upgraded(monkeypatch)
    scene.wanted = main(config={"num.network.threads": "4"})
    scene.begin()
    assert restarted(planned(scene)) == [1]


def test_the_rest_of_a_roll_goes_on_where_the_operator_is_replaced_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.start()
    scene.wanted = main(config={"num.network.threads": "4"})
    scene.look()
    scene.do(RestartNode(1, "num.network.threads has changed"))
    scene.run()
    upgraded(monkeypatch)
    scene.begin()
    plan = planned(scene)
    assert restarted(plan) == [2], "node 1 has what the resource asks for"
    for number in (2, 0):
        scene.do(RestartNode(number, ""))
        scene.run()
    assert pending(planned(scene)) == ["OperatorUpgraded"]


def test_a_setting_that_a_new_version_changes_while_brokers_run_is_nothing_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(main(config={"num.network.threads": "4"}))
    scene.start()
    for module in (spec_hash, platform_nodes):
        monkeypatch.setattr(module, "dynamic", lambda name: name == "num.network.threads")
    scene.begin()
    plan = planned(scene)
    assert (restarted(plan), pending(plan)) == ([], ["OperatorUpgraded"])


def test_a_node_of_which_nothing_is_noted_is_restarted_as_for_the_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.start()
    for name in scene.api.names("Pod"):
        scene.api.one("Pod", name)["metadata"]["annotations"].pop("kavka.dev/asked")
    upgraded(monkeypatch)
    assert restarted(planned(scene)) == [1]
