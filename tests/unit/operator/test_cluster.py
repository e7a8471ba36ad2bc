"""The nodes of a cluster: which there are, what they are told, what is done to them."""

from pathlib import Path

import pytest

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.properties import parse_properties
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.settings import broker_faults, topic_faults
from kavka_operator.domain.observed import (
    NodeState,
    SeenBroker,
    SeenCluster,
    SeenNode,
    SeenPartition,
    SeenQuorum,
    Survey,
    WantedNode,
)
from kavka_operator.domain.plan import AlterBrokers, ClusterPlan, CordonNode, MoveReplicas, StartNode, StopNode
from kavka_operator.platform.local import node_identity
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_identity import Members
from kavka_operator.platform.local.server_properties import LocalNode, fingerprint, local_nodes, port_clashes
from kavka_operator.platform.local.unsupported import unsupported
from kavka_operator.platform.nodes import nodes_of
from kavka_operator.reconcile import cluster as clusters
from kavka_operator.reconcile.cluster import brokers_config, managed_after
from kavka_operator.reconcile.rollout.restart import RESTART
from tests.unit.operator.fakes import NOW, cluster, cordoning

LAYOUT = Layout(Path("/state/default/main"), "default", "main")
NOBODY = Members()
NODES = [WantedNode(0, "new"), WantedNode(1, "new"), WantedNode(2, "new")]
LIVE = SeenCluster("id", 0, {number: SeenBroker(number, "a:1") for number in range(3)})


def seen(*states: NodeState, fingerprint: str = "new") -> dict[int, SeenNode]:
    return {number: SeenNode(number, state, fingerprint) for number, state in enumerate(states)}


def reconcile(
    wanted: KafkaCluster, nodes: list[WantedNode], seen: dict[int, SeenNode], live: SeenCluster | None
) -> ClusterPlan:
    partitions = (SeenPartition("orders", 0, 0, (0, 1, 2), (0, 1), 2),)
    survey = Survey(partitions, SeenQuorum(0, (0, 1, 2), {1: 0, 2: 0})) if live is not None else None
    return clusters.reconcile(wanted, nodes, seen, live, survey, NOW)


def rendered(wanted: KafkaCluster, known: Members = NOBODY) -> list[LocalNode]:
    return local_nodes(wanted, LAYOUT, known.joined_by(wanted, lambda _: True))


def test_absent_nodes_are_started_together() -> None:
    assert reconcile(cluster(), NODES, seen("Running"), None).actions == (StartNode(1), StartNode(2))


def test_a_cluster_that_runs_as_wanted_needs_no_action() -> None:
    plan = reconcile(cluster(), NODES, seen("Running", "Running", "Running"), LIVE)
    assert plan.actions == ()
    assert plan.words[0].message == "3 nodes run; orders-0 has fewer replicas in sync than wanted"


@pytest.mark.parametrize("state", ["Starting", "Restarting"])
def test_while_a_node_is_on_its_way_nothing_else_is_touched(state: NodeState) -> None:
    plan = reconcile(cluster(), NODES, seen("Running", state, "Running"), LIVE)
    assert (plan.actions, plan.words[0].reason, plan.words[0].message) == ((), "Starting", "2 of 3 nodes run")


def test_a_failed_node_stops_everything() -> None:
    plan = reconcile(cluster(), NODES, seen("Running", "Failed", "Running"), LIVE)
    assert (plan.actions, plan.words[0].reason) == ((), "NodeFailed")


def test_fewer_nodes_are_refused_where_the_replicas_have_no_other_place() -> None:
    plan = reconcile(cluster(), NODES[:2], seen("Running", "Running", "Running"), LIVE)
    assert (plan.actions, plan.words[0].reason) == ((), "ShrinkRefused")
    assert plan.words[0].message == (
        "orders-0: more replicas than brokers that stay and serve (2); want node 2 again, or fewer replicas"
    )


def test_the_replicas_of_a_node_that_is_not_wanted_are_moved() -> None:
    plan = shrunk("Running", replicas=(2, 0))
    move = MoveReplicas("orders", 2, {0: (1, 0)}, "move replicas of orders-0 away from node 2")
    assert plan.actions == (CordonNode(2, is_on=True), move)
    assert (plan.words[0].reason, plan.words[0].message) == (
        "Shrinking",
        "node 2 holds 1 replica; 1 partition on the way to other brokers",
    )


def shrunk(state: NodeState, *, replicas: tuple[int, ...] = (0, 1), voters: tuple[int, ...] = (0, 1)) -> ClusterPlan:
    """Two nodes are wanted, and a third one is there."""
    survey = Survey(
        (SeenPartition("orders", 0, 0, replicas, replicas),), SeenQuorum(0, voters, dict.fromkeys(voters, 0))
    )
    there = {**seen("Running", "Running"), 2: SeenNode(2, state, "old")}
    return clusters.reconcile(cordoning(cluster(), 2), NODES[:2], there, LIVE, survey, NOW)


def test_a_node_that_holds_nothing_goes() -> None:
    plan = shrunk("Running")
    assert (plan.actions, plan.words[0].reason) == ((CordonNode(2, is_on=False), StopNode(2)), "Shrinking")
    assert (shrunk("Stopping").actions, shrunk("Stopping").words[0].reason) == ((), "Shrinking")
    assert shrunk("Stopped").words[0].status == "True", "what is gone is not missed"


def test_a_stopped_node_that_is_assigned_replicas_is_started_again() -> None:
    assert shrunk("Stopped", replicas=(0, 2)).actions == (StartNode(2),)


def test_a_node_with_a_vote_stays() -> None:
    plan = shrunk("Running", voters=(0, 1, 2))
    assert (plan.actions, plan.words[0].message) == ((), "node 2 has a vote; want it again")


def test_surplus_nodes_do_not_hold_up_a_roll() -> None:
    survey = Survey((SeenPartition("orders", 0, 0, (0, 1, 2), (0, 1, 2)),), SeenQuorum(0, (0,), {}))
    there = {0: SeenNode(0, "Running", "old"), 1: SeenNode(1, "Running", "old"), 2: SeenNode(2, "Running", "old")}
    plan = clusters.reconcile(cluster(), NODES[:2], there, LIVE, survey, NOW)
    assert [str(action).split(":")[0] for action in plan.actions] == ["restart node 1"]


def test_a_setting_that_kafka_does_not_know_starts_nothing() -> None:
    plan = reconcile(cluster(config={"num.partitons": 1}), NODES, {}, None)
    assert (plan.actions, plan.words[0].reason) == ((), "BadConfig")
    assert plan.words[0].message.endswith('did you mean "num.partitions"?')


def test_words_while_no_broker_answers_and_while_one_has_not_joined() -> None:
    running = seen("Running", "Running", "Running")
    assert reconcile(cluster(), NODES, running, None).words[0].reason == "NotAnswering"
    lone = SeenCluster("id", 0, {0: SeenBroker(0, "a:1")})
    assert reconcile(cluster(), NODES, running, lone).words[0].message == "brokers 1, 2 have not joined yet"


def test_three_brokers_need_only_another_number() -> None:
    three = cluster(nodePools=[{"name": "nodes", "replicas": 3, "racks": ["a", "b"]}])
    nodes = rendered(three)
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


def test_rendered_properties_are_taken_by_the_broker() -> None:
    pools = [{"name": "nodes", "storage": {"volumes": [{"name": "a"}, {"name": "b"}]}}]
    (node,) = rendered(cluster(nodePools=pools, config={"num.partitions": 7}))
    config = BrokerConfig.parse(parse_properties(node.properties))
    assert config.log_dirs == ("/state/default/main/data/node-0/a", "/state/default/main/data/node-0/b")
    assert (config["num.partitions"], config["offsets.topic.replication.factor"], config.unknown) == (7, 1, ())


def test_nodes_with_one_role_each() -> None:
    apart = cluster(
        nodePools=[
            {"name": "controllers", "roles": ["controller"]},
            {"name": "brokers", "roles": ["broker"], "replicas": 2},
        ]
    )
    assert [node.id for node in nodes_of(apart, {})] == [0, 100, 101]
    first, second, third = (parse_properties(node.properties) for node in rendered(apart))
    assert first["listeners"] == "CONTROLLER://127.0.0.1:10094"
    assert second["listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert third["listeners"] == "PLAINTEXT://127.0.0.1:9093"
    assert second["controller.quorum.voters"] == "0@127.0.0.1:10094"


def ports(wanted: KafkaCluster, known: Members = NOBODY) -> list[tuple[int, ...]]:
    return [node.ports for node in rendered(wanted, known)]


def test_no_two_nodes_share_a_port() -> None:
    near = cluster(
        nodePools=[{"name": "nodes", "replicas": 2}],
        listeners=[{"name": "PLAINTEXT", "port": 9092}, {"name": "CONTROLLER", "port": 9093}],
    )
    assert ports(near) == [(9092, 9093, 9644), (9094, 9095, 9646)]


def test_the_first_broker_has_the_ports_of_the_resource_and_others_the_next_that_are_free() -> None:
    taken = {9092, 9093, 9646}
    two = cluster(nodePools=[{"name": "nodes", "replicas": 2}])
    found = Members().joined_by(two, lambda port: port not in taken)
    assert found == Members({0: 0, 1: 3}, (0, 1), pools={"nodes": 0})


def test_a_node_keeps_its_ports_when_another_pool_grows() -> None:
    def pools(first: int) -> KafkaCluster:
        both = [{"name": "a", "replicas": first}, {"name": "b", "roles": ["broker"], "replicas": 2}]
        return cluster(nodePools=both)

    known = Members().joined_by(pools(1), lambda _: True)
    assert known.offsets == {0: 0, 100: 1, 101: 2}
    assert known.joined_by(pools(2), lambda _: True) == Members(
        {0: 0, 1: 3, 100: 1, 101: 2}, (0,), pools={"a": 0, "b": 100}
    )


def test_members_are_kept_and_read_from_the_files_of_the_first_version(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path, "default", "main")
    layout.make()
    assert node_identity.read(layout) == Members()
    layout.properties(0).write_text("node.id=0")
    assert node_identity.read(layout) == Members({0: 0}, (0,))
    node_identity.keep(layout, Members({0: 0, 1: 4}, (0, 1)))
    assert node_identity.read(layout) == Members({0: 0, 1: 4}, (0, 1))


def test_ports_out_of_range_or_used_twice_are_named() -> None:
    high = cluster(
        nodePools=[{"name": "nodes", "replicas": 2}],
        listeners=[{"name": "PLAINTEXT", "port": 65_535}, {"name": "CONTROLLER", "port": 9093}],
    )
    clashes = port_clashes(local_nodes(high, LAYOUT, Members({0: 0, 1: 3}, (0, 1))))
    assert clashes == [
        "node 1 would advertise 127.0.0.1:65538; write a port from 1 to 65535",
        "node 1 would listen on port 65538; choose lower ports",
    ]
    moved = cluster(
        nodePools=[{"name": "nodes", "replicas": 2}],
        listeners=[{"name": "PLAINTEXT", "port": 9092}, {"name": "CONTROLLER", "port": 9093}],
    )
    clash = "port 9093 falls to node 0 and node 1; leave more room between ports"
    assert port_clashes(local_nodes(moved, LAYOUT, Members({0: 0, 1: 1}, (0, 1)))) == [clash]


def test_a_controller_alone_is_told_how_brokers_are_reached_where_it_keeps_a_trail() -> None:
    pools = [{"name": "brokers", "roles": ["broker"]}, {"name": "controllers", "roles": ["controller"]}]
    for is_audited in (False, True):
        wanted = cluster(nodePools=pools, listeners=[{"name": "INSIDE", "port": 9092}])
        if is_audited:
            wanted = cluster(nodePools=pools, listeners=[{"name": "INSIDE", "port": 9092}], audit={})
        nodes = [parse_properties(node.properties) for node in rendered(wanted)]
        (alone,) = (settings for settings in nodes if settings["process.roles"] == "controller")
        assert alone.get("inter.broker.listener.name") == ("INSIDE" if is_audited else None)


def test_a_restart_that_is_asked_for_is_seen_in_the_settings_and_told_as_the_reason() -> None:
    def node(**annotations: str) -> LocalNode:
        wanted = cluster(metadata={"annotations": annotations})
        return local_nodes(wanted, LAYOUT, Members({0: 0}, (0,)))[0]

    plain, asked = node(), node(**{RESTART: "now\nprocess.roles=none"})
    assert asked.changed(plain.properties) == (f"the annotation {RESTART}",)
    assert asked.changed(asked.properties) == ()
    assert fingerprint(asked) != fingerprint(plain)
    assert parse_properties(asked.properties) == parse_properties(plain.properties), "no text of it is a setting"


def advertising(template: str) -> list[LocalNode]:
    outside = {"name": "OUTSIDE", "port": 19092, "host": "0.0.0.0", "advertised": template}
    wanted = cluster(
        nodePools=[{"name": "nodes", "replicas": 2}], listeners=[outside, {"name": "INSIDE", "port": 9092}]
    )
    return local_nodes(wanted, LAYOUT, Members({0: 0, 1: 1}, (0, 1)))


def test_clients_are_told_what_a_listener_advertises_and_nodes_talk_on_another() -> None:
    nodes = advertising("kafka-{id}.example.com:{port}")
    second = parse_properties(nodes[1].properties)
    assert second["listeners"].startswith("OUTSIDE://0.0.0.0:19093,INSIDE://127.0.0.1:9093,CONTROLLER://")
    assert second["advertised.listeners"] == "OUTSIDE://kafka-1.example.com:19093,INSIDE://127.0.0.1:9093"
    assert second["inter.broker.listener.name"] == "INSIDE"
    assert [(node.told, node.address) for node in nodes] == [
        ("kafka-0.example.com:19092", "127.0.0.1:9092"),
        ("kafka-1.example.com:19093", "127.0.0.1:9093"),
    ]
    assert port_clashes(nodes) == []


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (
            "kafka.example.com:9092",
            "node 0 and node 1 would both advertise kafka.example.com:9092; write {id} or {port} in it",
        ),
        ("kafka-{id}:{port}{id}", "node 0 would advertise kafka-0:190920; write a port from 1 to 65535"),
    ],
)
def test_two_nodes_cannot_advertise_one_address(template: str, words: str) -> None:
    assert port_clashes(advertising(template))[0] == words


def test_a_cluster_that_this_version_cannot_run_is_refused_in_words() -> None:
    three = cluster(nodePools=[{"name": "nodes", "replicas": 3}])
    assert unsupported(three, LAYOUT, Members()) is None
    words = unsupported(three, LAYOUT, Members({0: 0}, (0,))) or ""
    assert "the controllers are nodes 0 since the first start and would be nodes 0, 1, 2" in words
    wider = cluster(nodePools=[{"name": "nodes"}, {"name": "more", "roles": ["broker"], "replicas": 2}])
    assert unsupported(wider, LAYOUT, Members({0: 0}, (0,))) is None


def test_dynamic_settings_are_altered_and_not_written_into_properties() -> None:
    wanted = cluster(config={"log.retention.ms": 5, "num.partitions": 7})
    (node,) = rendered(wanted)
    assert "log.retention.ms" not in parse_properties(node.properties)
    live = SeenCluster("id", 0, {}, config={"log.segment.bytes": "9"})
    assert brokers_config(wanted, live).actions == (AlterBrokers({"log.retention.ms": "5"}),)
    done = SeenCluster("id", 0, {}, config={"log.segment.bytes": "9", "log.retention.ms": "5"})
    assert not brokers_config(wanted, done).actions
    assert managed_after(wanted, done) == ("log.retention.ms",), "the other one was altered by somebody else"


def test_an_altered_setting_that_is_taken_out_goes_back_to_its_default() -> None:
    wanted = cluster()
    wanted = wanted.replaced({"status": wanted.status.replaced({"managed_config": ("log.retention.ms",)})})
    live = SeenCluster("id", 0, {}, config={"log.segment.bytes": "9", "log.retention.ms": "5"})
    assert brokers_config(wanted, live).actions == (AlterBrokers({}, ("log.retention.ms",)),)
    assert managed_after(wanted, live) == ("log.retention.ms",)
    assert managed_after(wanted, SeenCluster("id", 0, {})) == ()


def test_the_settings_that_changed_are_known_by_name() -> None:
    (before,), (after,) = (
        rendered(cluster(config={"num.partitions": 7})),
        rendered(cluster(config={"queued.max.requests": 9})),
    )
    assert after.changed(before.properties) == ("num.partitions", "queued.max.requests")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("delete.retention.ms", "log.cleaner.delete.retention.ms"),
        ("segment.ms", "log.roll.ms"),
        ("segment.jitter.ms", "log.roll.jitter.ms"),
        ("segment.index.bytes", "log.index.size.max.bytes"),
        ("flush.ms", "log.flush.interval.ms"),
        ("retention.ms", "log.retention.ms"),
    ],
)
def test_a_setting_of_a_topic_has_the_name_that_it_has_at_a_broker(written: str, meant: str) -> None:
    """The nearest by letters of `delete.retention.ms` is `log.retention.ms`, which would cost records."""
    words = dict(broker_faults({written: "1"}))[written]
    assert words == f'is not a setting of a broker; did you mean "{meant}"?'
    words = dict(topic_faults({meant: "1"}))[meant]
    assert words == f'is not a setting of a topic; did you mean "{written}"?'


@pytest.mark.parametrize("written", ["log.retention.hours", "log.retention.minutes"])
def test_a_coarser_unit_is_known_too(written: str) -> None:
    assert dict(topic_faults({written: "1"}))[written].endswith('did you mean "retention.ms"?')


def test_a_setting_that_promises_what_brokers_do_not_do_is_refused_before_a_node_is_touched() -> None:
    faults = dict(broker_faults({"authorizer.class.name": "com.example.A", "num.io.threads": "4"}))
    assert list(faults) == ["authorizer.class.name"]
    assert "no other authorizer" in faults["authorizer.class.name"]
    (words,) = dict(broker_faults({"ssl.client.auth": "required"})).values()
    assert words == "no listener speaks SSL; give one such a protocol, or remove it"
    assert list(dict(broker_faults({"listener.name.a.ssl.client.auth": "required"}))) == [
        "listener.name.a.ssl.client.auth"
    ]
