"""The nodes of a cluster: which there are, what they are told, what is done to them."""

from pathlib import Path

import pytest

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.properties import parse_properties
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.limits import ignored, unsupported
from kavka_operator.platform.local.rendering import local_nodes, port_clashes
from kavka_operator.platform.nodes import nodes_of
from kavka_operator.reconcile.cluster import APPROVE, plan_hash, reconcile, rollout_status
from kavka_operator.reconcile.plan import RestartNode, StartNode
from kavka_operator.reconcile.seen import NodeState, SeenBroker, SeenCluster, SeenNode, WantedNode
from tests.unit.operator.fakes import cluster

LAYOUT = Layout(Path("/state/default/main"), "default", "main")
NODES = [WantedNode(0, "new"), WantedNode(1, "new"), WantedNode(2, "new")]
LIVE = SeenCluster("id", 0, {number: SeenBroker(number, "a:1") for number in range(3)})


def seen(*states: NodeState, fingerprint: str = "new") -> dict[int, SeenNode]:
    return {number: SeenNode(number, state, fingerprint) for number, state in enumerate(states)}


def test_absent_nodes_are_started_together() -> None:
    assert reconcile(cluster(), NODES, seen("Running"), None).actions == (StartNode(1), StartNode(2))


def test_running_as_wanted_needs_nothing() -> None:
    plan = reconcile(cluster(), NODES, seen("Running", "Running", "Running"), LIVE)
    assert (plan.actions, plan.words[0].message) == ((), "3 nodes run")


@pytest.mark.parametrize("state", ["Starting", "Restarting"])
def test_while_a_node_is_on_its_way_nothing_else_is_touched(state: NodeState) -> None:
    plan = reconcile(cluster(), NODES, seen("Running", state, "Running", fingerprint="old"), LIVE)
    assert (plan.actions, plan.words[0].reason, plan.words[0].message) == ((), "Starting", "2 of 3 nodes run")


def test_a_failed_node_stops_everything() -> None:
    plan = reconcile(cluster(), NODES, seen("Running", "Failed", "Running", fingerprint="old"), LIVE)
    assert (plan.actions, plan.words[0].reason) == ((), "NodeFailed")


def test_changed_settings_restart_one_node_at_a_time() -> None:
    stale = {
        **seen("Running", "Running", "Running"),
        1: SeenNode(1, "Running", "old"),
        2: SeenNode(2, "Running", "old"),
    }
    plan = reconcile(cluster(), NODES, stale, LIVE)
    assert plan.actions == (RestartNode(1, "its settings have changed"),)
    status = rollout_status(NODES, stale)
    assert status is not None
    assert (status.done, status.total, status.current) == (1, 3, 1)
    assert rollout_status(NODES, seen("Running", "Running", "Running")) is None


def test_a_roll_can_be_held() -> None:
    held = cluster(rollout={"hold": True})
    plan = reconcile(held, NODES, seen("Running", "Running", "Running", fingerprint="old"), LIVE)
    assert (plan.actions, plan.words[0].reason) == ((), "RolloutHeld")


def test_a_roll_can_wait_for_an_approval_that_a_change_of_mind_voids() -> None:
    old = seen("Running", "Running", "Running", fingerprint="old")
    manual = {"rollout": {"approval": "Manual"}}
    assert reconcile(cluster(**manual), NODES, old, LIVE).words[0].reason == "RolloutWaits"
    approved = cluster(metadata={"annotations": {APPROVE: plan_hash(NODES)}}, **manual)
    assert reconcile(approved, NODES, old, LIVE).actions == (RestartNode(0, "its settings have changed"),)
    other = [WantedNode(number, "newer") for number in range(3)]
    assert reconcile(approved, other, old, LIVE).is_empty


def test_fewer_nodes_are_refused_while_they_hold_replicas() -> None:
    plan = reconcile(cluster(), NODES[:2], seen("Running", "Running", "Running"), LIVE)
    assert (plan.actions, plan.words[0].reason) == ((), "ShrinkRefused")


def test_a_setting_that_kafka_does_not_know_starts_nothing() -> None:
    plan = reconcile(cluster(config={"num.partitons": 1}), NODES, {}, None)
    assert (plan.actions, plan.words[0].reason) == ((), "BadConfig")
    assert plan.words[0].message.endswith('did you mean "num.partitions"?')


def test_nobody_answers_and_somebody_has_not_joined() -> None:
    running = seen("Running", "Running", "Running")
    assert reconcile(cluster(), NODES, running, None).words[0].reason == "NotAnswering"
    lone = SeenCluster("id", 0, {0: SeenBroker(0, "a:1")})
    assert reconcile(cluster(), NODES, running, lone).words[0].message == "brokers 1, 2 have not joined yet"


def test_three_brokers_are_a_change_of_a_number() -> None:
    three = cluster(nodePools=[{"name": "nodes", "replicas": 3, "racks": ["a", "b"]}])
    nodes = local_nodes(three, LAYOUT)
    settings = [parse_properties(node.properties) for node in nodes]
    assert [each["node.id"] for each in settings] == ["0", "1", "2"]
    assert [each["broker.rack"] for each in settings] == ["a", "b", "a"]
    assert [each["listeners"] for each in settings] == [
        f"PLAINTEXT://127.0.0.1:{9092 + n},CONTROLLER://127.0.0.1:{10092 + n}" for n in range(3)
    ]
    voters = "0@127.0.0.1:10092,1@127.0.0.1:10093,2@127.0.0.1:10094"
    assert {each["controller.quorum.voters"] for each in settings} == {voters}
    assert {each["offsets.topic.replication.factor"] for each in settings} == {"3"}
    assert [each["kavka.admin.listener"] for each in settings] == [f"127.0.0.1:{9644 + n}" for n in range(3)]
    assert port_clashes(nodes) == []


def test_what_is_rendered_is_a_configuration_that_the_broker_takes() -> None:
    pools = [{"name": "nodes", "storage": {"volumes": [{"name": "a"}, {"name": "b"}]}}]
    (node,) = local_nodes(cluster(nodePools=pools, config={"num.partitions": 7}), LAYOUT)
    config = BrokerConfig.parse(parse_properties(node.properties))
    assert config.log_dirs == ("/state/default/main/data/node-0/a", "/state/default/main/data/node-0/b")
    assert (config["num.partitions"], config["offsets.topic.replication.factor"], config.unknown) == (7, 1, ())


def test_roles_apart() -> None:
    apart = cluster(
        nodePools=[
            {"name": "controllers", "roles": ["controller"]},
            {"name": "brokers", "roles": ["broker"], "replicas": 2},
        ]
    )
    assert [node.id for node in nodes_of(apart)] == [0, 100, 101]
    first, second, _ = (parse_properties(node.properties) for node in local_nodes(apart, LAYOUT))
    assert first["listeners"] == "CONTROLLER://127.0.0.1:10092"
    assert second["listeners"] == "PLAINTEXT://127.0.0.1:9093"
    assert second["controller.quorum.voters"] == "0@127.0.0.1:10092"


def test_ports_that_clash_are_named() -> None:
    three = cluster(
        nodePools=[{"name": "nodes", "replicas": 2}],
        listeners=[{"name": "PLAINTEXT", "port": 9092}, {"name": "CONTROLLER", "port": 9093}],
    )
    assert port_clashes(local_nodes(three, LAYOUT)) == [
        "port 9093 falls to node 0 and node 1; leave more room between ports"
    ]
    high = cluster(listeners=[{"name": "PLAINTEXT", "port": 65_000}])
    assert port_clashes(local_nodes(high, LAYOUT)) == ["node 0 would listen on port 66000; choose lower ports"]


def test_what_this_version_cannot_run_is_said() -> None:
    assert unsupported(cluster()) is None
    assert "3 nodes are wanted" in (unsupported(cluster(nodePools=[{"name": "n", "replicas": 3}])) or "")
    assert ignored(cluster()) == []
    assert len(ignored(cluster(rollout={"delaySeconds": 5}, audit={"topic": "audit"}))) == 2
