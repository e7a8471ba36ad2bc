"""Nodes that are no longer wanted and cannot give back what they held: all is told, and nothing is given up."""

from dataclasses import replace

import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import NodeStatus
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.observed import (
    SeenBroker,
    SeenCluster,
    SeenNode,
    SeenPartition,
    SeenQuorum,
    Survey,
    WantedNode,
)
from kavka_operator.domain.plan import ClusterPlan, MoveReplicas, Plan, StartNode, StopNode
from kavka_operator.reconcile import cluster as clusters
from kavka_operator.reconcile.drain import MOVES_MAX
from kavka_operator.reconcile.status import PassResult, cluster_status
from tests.unit.operator.fakes import NOW, cluster

NODES = [WantedNode(0, "new"), WantedNode(1, "new")]
LIVE = SeenCluster("id", 0, {number: SeenBroker(number, "a:1") for number in range(2)})
COPIED = SeenPartition("copied", 0, 0, (2, 0), (0,))
ALONE = SeenPartition("alone", 0, None, (2,), (2,))
LAGGING = SeenPartition("lagging", 0, None, (2, 0), (2,))
LOST = SeenNode(2, "Stopped", "old", message="the volume data is gone", lost=("id2",))


def of_before(*numbers: int) -> KafkaCluster:
    """A KafkaCluster that had these nodes when its status was written last."""
    wanted = cluster()
    nodes = tuple(NodeStatus(id=number, roles=("broker",), state="Running") for number in numbers)
    return wanted.replaced({"status": wanted.status.replaced({"nodes": nodes})})


def survey_of(*partitions: SeenPartition, moving: dict[tuple[str, int], tuple[int, ...]] | None = None) -> Survey:
    return Survey(partitions, SeenQuorum(0, (0, 1), {0: 0, 1: 0}), "", moving or {})


def planned(survey: Survey, leaving: SeenNode | None = None, wanted: KafkaCluster | None = None) -> ClusterPlan:
    """The plan where nodes 0 and 1 are wanted and run. Of node 2 there is nothing left but what is given here."""
    there = {number: SeenNode(number, "Running", "new") for number in range(2)}
    seen = there if leaving is None else {**there, 2: leaving}
    return clusters.reconcile(wanted or of_before(0, 1, 2), NODES, seen, LIVE, survey, NOW)


def said(plan: ClusterPlan) -> tuple[str, str]:
    return plan.words[0].reason, plan.words[0].message


MOVED = MoveReplicas("copied", 2, {0: (1, 0)}, "move replicas of copied-0 away from node 2")


@pytest.mark.parametrize("leaving", [None, LOST], ids=["gone without a trace", "lost its volume"])
def test_what_others_have_in_sync_is_copied_from_them(leaving: SeenNode | None) -> None:
    plan = planned(survey_of(COPIED), leaving)
    assert plan.actions == (MOVED,)
    assert said(plan) == ("Shrinking", "node 2 holds 1 replica; 1 partition on the way to other brokers")


@pytest.mark.parametrize("partition", [ALONE, LAGGING])
@pytest.mark.parametrize("leaving", [None, LOST, SeenNode(2, "Failed", "old", message="its volume has vanished")])
def test_records_that_only_a_node_has_that_is_away_are_named_and_kept(
    leaving: SeenNode | None, partition: SeenPartition
) -> None:
    plan = planned(survey_of(partition), leaving)
    assert (plan.actions, said(plan)[0]) == ((), "ShrinkRefused")
    assert said(plan)[1] == (
        f"node 2 holds 1 replica; {partition.name}: nobody has it in sync but node 2, which is away; want it again if"
        " the volume is still there; otherwise its records are lost: delete the topic, or let a replica that lags lead"
        " (kafka-leader-election.sh --election-type unclean)"
    )
    assert [word.type for word in plan.words if word.status == "True"] == ["Stalled"]


def test_a_partition_that_another_node_may_still_lead_is_not_given_up() -> None:
    eligible = SeenPartition("orders", 0, None, (2, 0), (), elr=(0,))
    assert "orders-0: no leader yet to copy from" in said(planned(survey_of(eligible)))[1]
    only_it = replace(eligible, elr=(), last_known_elr=(2,))
    assert "orders-0: nobody has it in sync but node 2" in said(planned(survey_of(only_it)))[1]


def test_what_can_be_moved_is_moved_beside_what_cannot() -> None:
    plan = planned(survey_of(ALONE, COPIED))
    assert plan.actions == (MOVED,)
    assert said(plan)[0] == "Shrinking"
    assert "alone-0: nobody has it in sync but node 2, which is away" in said(plan)[1]


def test_moves_that_nothing_can_be_copied_for_take_no_others_turn() -> None:
    stuck = [SeenPartition("stuck", index, None, (2, 0), (2,)) for index in range(MOVES_MAX)]
    plan = planned(survey_of(*stuck, COPIED, moving={partition.key: (0,) for partition in stuck}))
    assert plan.actions == (MOVED,)


def test_a_node_that_lost_its_volume_is_stopped_when_it_is_to_hold_nothing() -> None:
    plan = planned(survey_of(), LOST)
    assert (plan.actions, said(plan)[0]) == ((StopNode(2),), "Shrinking")


def test_a_node_that_is_down_with_its_volume_is_started_again() -> None:
    assert planned(survey_of(ALONE), replace(LOST, lost=())).actions == (StartNode(2),)


def test_a_partition_without_a_leader_waits_for_one_where_a_node_may_come_back() -> None:
    plan = planned(survey_of(ALONE), SeenNode(2, "Restarting", "old"))
    words = "node 2 holds 1 replica; 0 partitions on the way to other brokers; alone-0: no leader yet to copy from"
    assert (plan.actions, said(plan)) == ((), ("Shrinking", words))


def test_replicas_on_a_broker_that_was_never_ours_stay_and_are_told() -> None:
    plan = planned(survey_of(COPIED), wanted=of_before(0, 1))
    assert plan.actions == ()
    words = "; copied-0 has replicas on node 2, which is away and is not of this KafkaCluster"
    assert said(plan) == ("Ready", f"2 nodes run; copied-0 has fewer replicas in sync than wanted{words}")


def test_a_partition_with_one_replica_and_no_leader_is_told() -> None:
    partition = SeenPartition("single", 3, None, (1,), (1,))
    assert said(planned(survey_of(partition)))[1] == "2 nodes run; single-3 has no leader"


def test_a_node_that_is_gone_is_remembered_until_it_is_to_hold_nothing() -> None:
    seen = {number: SeenNode(number, "Running", "new") for number in range(2)}
    wanted = of_before(0, 1, 2)

    def states(survey: Survey | None) -> dict[int, str]:
        found = cluster_status(wanted, View(NODES, seen), PassResult(Plan(), NOW, LIVE, survey=survey))
        return {line.id: line.state for line in found.nodes}

    assert states(survey_of(ALONE)) == {0: "Running", 1: "Running", 2: "Stopped"}
    assert states(None)[2] == "Stopped", "nobody tells that it holds nothing"
    assert states(survey_of()) == {0: "Running", 1: "Running"}
