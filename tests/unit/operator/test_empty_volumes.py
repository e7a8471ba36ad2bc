"""Brokers whose volumes end with their pods: when their pods begin empty, and when they may be restarted."""

from dataclasses import replace
from typing import Any

import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.observed import (
    NodeState,
    SeenBroker,
    SeenCluster,
    SeenNode,
    SeenPartition,
    SeenQuorum,
    SeenVolume,
    Survey,
    WantedNode,
)
from kavka_operator.domain.plan import LiftGate, RestartNode
from kavka_operator.platform.kubernetes.objects.names import GATE
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_identity import Members
from kavka_operator.platform.local.unsupported import unsupported
from kavka_operator.reconcile.cluster import reconcile
from kavka_operator.reconcile.empty_volumes import empty_starts
from kavka_operator.reconcile.rollout.disruption import open_ones, why_not
from tests.unit.operator.fakes import NOW, cluster
from tests.unit.operator.pods import RUNS, SIZED, Scene, main

FORGET = "kavka.dev/forget-volumes"
EPHEMERAL = {"type": "Ephemeral", "sizeLimit": "1Gi"}
POOLS = [
    {"name": "voters", "replicas": 1, "roles": ["controller"], "storage": SIZED},
    {"name": "brokers", "replicas": 3, "roles": ["broker"], "storage": EPHEMERAL},
]
BROKERS = (100, 101, 102)
NODES = [
    WantedNode(0, "new", roles=("controller",), volumes=("data",)),
    *(WantedNode(number, "new", roles=("broker",), is_ephemeral=True) for number in BROKERS),
]
LIVE = SeenCluster("id", 0, {number: SeenBroker(number, "a:1") for number in BROKERS})
QUORUM = SeenQuorum(0, (0,), {0: 0})
ALL: dict[str, Any] = {"replicas": BROKERS, "in_sync_min": 2}


def partition(isr: tuple[int, ...], *, leader: int | None = 101, **more: Any) -> SeenPartition:
    return SeenPartition(**{"topic": "orders", "index": 7, "leader": leader, "isr": isr, **ALL, **more})


def survey(*partitions: SeenPartition, doubt: str = "") -> Survey:
    return Survey(partitions, QUORUM, doubt)


def nodes(*gated: int, fingerprint: str = "new", **more: Any) -> dict[int, SeenNode]:
    """The controller and the brokers, of which some wait to begin empty."""
    found = {0: SeenNode(0, "Running", "new")}
    for number in BROKERS:
        state: NodeState = "Starting" if number in gated else "Running"
        is_gated = number in gated
        found[number] = SeenNode(number, state, fingerprint, life=f"uid-{number}", is_gated=is_gated, **more)
        found[number] = replace(found[number], has_begun=not is_gated)
    return found


def answered(annotation: str = "") -> KafkaCluster:
    """A cluster whose brokers have answered before."""
    made = cluster(metadata={"annotations": {FORGET: annotation}} if annotation else None)
    return made.replaced({"status": made.status.replaced({"cluster_id": "id"})})


def test_a_pod_has_an_empty_directory_a_gate_and_no_id_for_it() -> None:
    scene = Scene(main(nodePools=POOLS))
    view = scene.start()
    assert scene.api.names("PersistentVolumeClaim") == ["data-main-voters-0"]
    spec = scene.api.one("StatefulSet", "main-brokers-100")["spec"]["template"]["spec"]
    assert spec["volumes"][0] == {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}
    assert spec["schedulingGates"] == [{"name": GATE}]
    (words,) = [container["args"] for container in spec["initContainers"]]
    assert not any(word.startswith("--directory-id") for word in words)
    assert "--no-initial-controllers" in words
    assert [word for word in words if word.startswith("--cluster-id=id")]
    assert "schedulingGates" not in scene.api.one("StatefulSet", "main-voters-0")["spec"]["template"]["spec"]
    assert view.refusal is None
    assert [node.is_ephemeral for node in view.wanted] == [False, True, True, True]
    assert view.pools == {"voters": 0, "brokers": 100}


def test_a_gate_is_lifted_from_the_pod_and_the_next_pod_has_one_again() -> None:
    scene = Scene(main(nodePools=POOLS))
    scene.start()
    before = scene.look().seen[101]
    assert before.is_gated
    scene.do(LiftGate(101))
    begun = scene.look().seen[101]
    assert (begun.is_gated, begun.life) == (False, before.life)
    scene.api.say("main-brokers-101-0", **RUNS)
    assert scene.look().seen[101].state == "Running"
    scene.do(RestartNode(101, "why"))
    after = scene.look().seen[101]
    assert (after.state, after.is_gated) == ("Starting", True)
    assert after.life not in {"", before.life}
    assert GATE in after.message


def test_at_rest_nothing_is_written_and_ids_of_pools_are_kept_on_stateful_sets() -> None:
    scene = Scene(main(nodePools=POOLS))
    scene.start()
    before = len(scene.api.writes)
    scene.wanted = main(nodePools=[*reversed(POOLS)])
    assert scene.look().pools == {"voters": 0, "brokers": 100}
    assert len(scene.api.writes) == before


def test_claims_of_a_former_pool_of_the_name_are_never_taken_for_the_empty_directory() -> None:
    pools = [POOLS[0], {**POOLS[1], "storage": SIZED}]
    scene = Scene(main(nodePools=pools))
    scene.start()
    for number in BROKERS:
        del scene.api.objects["StatefulSet", f"main-brokers-{number}"]
    scene.api.control()
    scene.wanted = main(nodePools=POOLS)
    view = scene.look()
    plan = reconcile(scene.wanted, view.wanted, view.seen, None, None, NOW, view.volumes)
    assert plan.words[0].reason == "VolumeRefused"
    assert 'volume "data" of node 100 cannot be read' in plan.words[0].message


@pytest.mark.parametrize(
    ("partitions", "lifted"),
    [
        ([partition((101, 102))], True),
        ([partition(BROKERS)], False),  # until the controller has taken it out
        ([partition((100,), leader=None)], False),  # others would truncate to what is empty
        ([partition((), leader=None, elr=(100, 101))], False),
        ([partition((), leader=None, elr=(101,))], True),
        ([partition((), leader=None, last_known_elr=(100,))], False),
        ([partition((), leader=None)], False),
        ([partition((100,), replicas=(100,))], True),  # nobody has anything of it any more
        ([partition((101,)), partition((100,), index=8, leader=None)], False),
        ([], True),
    ],
)
def test_a_node_begins_empty_where_nobody_counts_on_what_it_held(partitions: list[SeenPartition], lifted: bool) -> None:
    plan = reconcile(answered(), NODES, nodes(100), LIVE, survey(*partitions), NOW)
    assert [action.node for action in plan.actions if isinstance(action, LiftGate)] == ([100] if lifted else [])
    given_up = {**nodes(100), 100: replace(nodes(100)[100], is_given_up=True)}
    found = empty_starts(NODES, given_up, survey(*partitions), {})
    assert [action.node for action in found.lift] == [100]


def test_the_last_copy_waits_for_a_person_and_is_named_with_both_ways_out() -> None:
    plan = reconcile(answered(), NODES, nodes(100), LIVE, survey(partition((100,), leader=None)), NOW)
    word = next(word for word in plan.words if word.type == "Stalled")
    assert word.reason == "VolumeRefused"
    assert "the controller knows no other replica with all records of orders-7" in word.message
    assert "kafka-leader-election.sh --election-type unclean" in word.message
    assert f"{FORGET}=uid-100" in word.message


def test_a_node_that_still_counts_as_in_sync_waits_for_the_controller_and_not_for_a_person() -> None:
    plan = reconcile(answered(), NODES, nodes(100), LIVE, survey(partition(BROKERS)), NOW)
    assert [word.type for word in plan.words] == ["Ready", "Reconciling"]
    assert "node 100: its volumes are empty, and it counts as in sync with orders-7" in plan.words[0].message


def test_records_that_nobody_has_any_more_hold_no_gate_and_are_named() -> None:
    lost = partition((100, 101), leader=None, replicas=(100, 101))
    plan = reconcile(answered(), NODES, nodes(100, 101), LIVE, survey(lost), NOW)
    assert plan.actions == (LiftGate(100, ("orders-7",)), LiftGate(101, ("orders-7",)))
    assert str(plan.actions[0]).endswith("; the records of orders-7 are gone with its former pod")
    assert reconcile(answered(), NODES, nodes(100), LIVE, survey(lost), NOW).actions == (), "101 may have them"


def test_a_node_waits_for_brokers_that_do_not_answer_and_could_tell() -> None:
    found = empty_starts(NODES, nodes(100), None, {})
    assert found.lift == ()
    assert "waits for nodes 101, 102 to tell" in found.waiting[100]
    assert empty_starts(NODES, nodes(100), survey(doubt="no controller"), {}).lift == ()
    never_ran = {**nodes(100), **{number: replace(nodes()[number], has_begun=False) for number in (101, 102)}}
    assert [action.node for action in empty_starts(NODES, never_ran, None, {}).lift] == [100]


def test_where_every_broker_has_lost_its_volumes_nothing_is_left_to_wait_for() -> None:
    found = empty_starts(NODES, nodes(*BROKERS), None, {})
    assert [action.node for action in found.lift] == list(BROKERS)
    with_claims = [*NODES, WantedNode(200, "new", roles=("broker",), volumes=("data",))]
    there = {200: (SeenVolume("data", "data-main-more-200", None),)}
    waits = empty_starts(with_claims, nodes(*BROKERS), None, there)
    assert waits.lift == (), "200 was taken down, and its volume may hold records"
    assert [action.node for action in empty_starts(with_claims, nodes(*BROKERS), None, {}).lift] == [*BROKERS]


def test_a_gate_is_lifted_in_a_roll_and_the_roll_is_remembered() -> None:
    wanted = answered()
    plan = reconcile(wanted, NODES, nodes(fingerprint="old"), LIVE, survey(partition(BROKERS)), NOW)
    assert plan.actions[0] == RestartNode(100, "its settings have changed")
    assert plan.rollout is not None
    rolling = wanted.replaced({"status": wanted.status.replaced({"rollout": plan.rollout})})
    begun = {**nodes(fingerprint="old"), 100: nodes(100)[100]}
    plan = reconcile(rolling, NODES, begun, LIVE, survey(partition((101, 102))), NOW)
    assert plan.actions == (LiftGate(100),)
    assert plan.rollout == rolling.status.rollout


def test_the_only_replica_is_not_taken_down_by_a_roll_before_a_person_gives_it_up() -> None:
    single = survey(partition((100,), leader=100, replicas=(100,)), partition(BROKERS, index=8))
    stale = {**nodes(), 100: replace(nodes()[100], fingerprint="old")}
    plan = reconcile(answered(), NODES, stale, LIVE, single, NOW)
    assert plan.actions == ()
    (held,) = [word for word in plan.words if word.type == "RolloutPending"]
    assert held.reason == "RolloutHeld"
    assert "broker 100 would come back empty: its volumes end with its pod" in held.message
    assert (
        f"no other replica of orders-7 has all records; to give up what it holds, set the annotation {FORGET}=uid-100"
        in (held.message)
    )
    given_up = {**stale, 100: replace(stale[100], is_given_up=True)}
    plan = reconcile(answered("uid-100"), NODES, given_up, LIVE, single, NOW)
    assert [action.node for action in plan.actions if isinstance(action, RestartNode)] == [100]
    others = {number: replace(node, fingerprint="old") for number, node in stale.items() if number}
    plan = reconcile(answered(), NODES, {0: stale[0], **others}, LIVE, single, NOW)
    assert [action.node for action in plan.actions if isinstance(action, RestartNode)] == [101], "the others go on"


def test_a_broker_that_crashes_keeps_its_pod_while_others_lack_its_records() -> None:
    crashed = {**nodes(), 100: replace(nodes()[100], state="Failed", fingerprint="old", message="died")}
    lacking = survey(partition((), leader=None, elr=(100,)))
    plan = reconcile(answered(), NODES, crashed, LIVE, lacking, NOW)
    assert plan.actions == ()
    assert any("broker 100 would come back empty" in word.message for word in plan.words)
    plan = reconcile(answered(), NODES, crashed, LIVE, survey(partition((101, 102))), NOW)
    assert plan.actions == (RestartNode(100, "its settings have changed"),)


def test_a_crashed_broker_of_a_silent_cluster_is_held_unless_none_has_ever_answered() -> None:
    crashed = {number: replace(node, state="Failed", fingerprint="old") for number, node in nodes().items() if number}
    seen = {0: nodes()[0], **crashed}
    plan = reconcile(answered(), NODES, seen, None, None, NOW)
    assert plan.actions == ()
    assert any("no broker tells whether others have what it held" in word.message for word in plan.words)
    plan = reconcile(cluster(), NODES, seen, None, None, NOW)
    assert [action.node for action in plan.actions if isinstance(action, RestartNode)] == list(BROKERS)


def test_nobody_may_evict_the_only_replica() -> None:
    single = survey(partition((100,), leader=100, replicas=(100,)))
    reasons = why_not(NODES[1:], nodes(), LIVE, single, most=3)
    assert "would come back empty" in reasons[100]
    assert 101 in open_ones(reasons)
    given_up = {**nodes(), 100: replace(nodes()[100], is_given_up=True)}
    assert 100 in open_ones(why_not(NODES[1:], given_up, LIVE, single, most=3))


def test_what_a_person_gives_up_is_named_by_the_pod_that_has_it() -> None:
    scene = Scene(main(nodePools=POOLS))
    scene.start()
    life = scene.look().seen[100].life
    scene.wanted = main(nodePools=POOLS, annotations={FORGET: life})
    assert [node.is_given_up for node in scene.look().seen.values()] == [False, True, False, False]
    scene.do(RestartNode(100, "why"))
    assert not scene.look().seen[100].is_given_up, "the next life has another name"


def test_a_rack_that_was_drawn_from_machines_stays_while_a_pod_waits() -> None:
    zone = "topology.kubernetes.io/zone"
    scene = Scene(main(nodePools=[POOLS[0], {**POOLS[1], "topologyKey": zone}]))
    scene.api.nodes = [{"metadata": {"name": f"m-{value}", "labels": {zone: value}}} for value in "abc"]
    view = scene.start()
    racks = {node.id: node.rack for node in view.wanted if node.is_ephemeral}
    assert sorted(racks.values(), key=str) == ["a", "b", "c"]
    scene.api.nodes = scene.api.nodes[1:]
    scene.do(RestartNode(100, "why"))
    assert {node.id: node.rack for node in scene.look().wanted if node.is_ephemeral} == racks


def test_processes_of_this_machine_are_refused_with_the_field_and_what_to_write(tmp_path: Any) -> None:
    words = unsupported(main(nodePools=POOLS), Layout.of(tmp_path, "default", "main"), Members()) or ""
    assert 'spec.nodePools "brokers": storage.type: Ephemeral is of pods on Kubernetes' in words
    assert "kavka up --ephemeral" in words
