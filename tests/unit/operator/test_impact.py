"""What becomes of nodes when their resource is another: order, risk, what is emptied, what waits, what is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.observed import (
    SeenBroker,
    SeenCluster,
    SeenNode,
    SeenPartition,
    SeenQuorum,
    SeenTopic,
    SeenVolume,
    Survey,
    WantedNode,
)
from kavka_operator.domain.plan import MoveReplicas
from kavka_operator.reconcile.impact import Emptied, Forecast, as_told, bytes_to_copy, forecast
from tests.unit.operator.fakes import NOW, cluster

FORMER = ("num.io.threads",)


def at(topic: str, index: int, *replicas: int, isr: Sequence[int] | None = None, least: int = 1) -> SeenPartition:
    return SeenPartition(topic, index, replicas[0], replicas, tuple(isr or replicas), least)


def nodes(*ids: int) -> list[WantedNode]:
    return [WantedNode(number, "new") for number in ids]


def seen(*ids: int, mark: str = "old", **fields: Any) -> dict[int, SeenNode]:
    return {number: SeenNode(number, "Running", mark, changed=FORMER, **fields) for number in ids}


def live(*ids: int) -> SeenCluster:
    return SeenCluster("a-cluster", 0, {number: SeenBroker(number, f"h:{number}") for number in ids})


def survey(*partitions: SeenPartition, leader: int = 0, voters: Sequence[int] = (0, 1, 2), **fields: Any) -> Survey:
    return Survey(partitions, SeenQuorum(leader, tuple(voters), dict.fromkeys(voters, 0), **fields))


def said(
    wanted: KafkaCluster,
    ids: Sequence[int],
    there: Mapping[int, SeenNode],
    found: Survey | None,
    **others: Any,
) -> Forecast:
    return forecast(wanted, nodes(*ids), there, live(*there), found, NOW, **others)


def waves(told: Forecast) -> list[list[int]]:
    return [
        [restart.node for restart in told.restarts if restart.wave == wave]
        for wave in sorted({restart.wave for restart in told.restarts})
    ]


def test_nodes_restart_one_after_the_other_and_the_active_controller_last() -> None:
    told = said(cluster(), [0, 1, 2], seen(0, 1, 2), survey(at("t", 0, 0, 1, 2, least=2)))
    assert waves(told) == [[1], [2], [0]]
    assert told.restarts[0].reason == "num.io.threads has changed"
    assert (told.waits, told.in_the_way, told.refused, told.at_risk) == ((), (), (), ())


def test_nodes_that_share_no_partition_go_together_where_that_is_asked_for() -> None:
    parts = [at("t", 0, 1, 2), at("t", 1, 3, 4)]
    wanted = cluster(rollout={"maxConcurrent": 2})
    told = said(wanted, [1, 2, 3, 4], seen(1, 2, 3, 4), survey(*parts, leader=0, voters=(0,)))
    assert waves(told) == [[1, 3], [2, 4]]


def test_what_is_unavailable_meanwhile_and_what_is_in_the_way_now_are_told() -> None:
    lonely, short = at("lonely", 0, 1), at("short", 0, 1, 2, isr=[1], least=1)
    told = said(cluster(), [0, 1, 2], seen(0, 1, 2), survey(lonely, short))
    assert told.at_risk == ("lonely-0",)
    assert any("short-0 has 1 of 2 replicas in sync" in words for words in told.in_the_way), told.in_the_way
    assert [restart.node for restart in told.restarts] == [1, 2, 0], "the order is told all the same"


@pytest.mark.parametrize(
    ("rollout", "annotations", "words"),
    [
        ({"approval": "Manual"}, {}, "for the annotation kavka.dev/approve-rollout="),
        ({"hold": True}, {}, "for spec.rollout.hold: false"),
        ({}, {"kavka.dev/hold-nodes": "all"}, "for the end of the annotation kavka.dev/hold-nodes"),
        (
            {"windows": [{"days": ["Mon"], "startTime": "01:00", "durationMinutes": 5}]},
            {},
            "for a window: Mon 01:00 UTC for 5 min",
        ),
    ],
)
def test_what_a_person_has_to_let_go_on_waits(rollout: dict[str, Any], annotations: dict[str, str], words: str) -> None:
    wanted = cluster(metadata={"annotations": annotations}, rollout=rollout)
    told = said(wanted, [0, 1, 2], seen(0, 1, 2), survey())
    assert len(told.waits) == 1
    assert words in told.waits[0]
    assert len(told.restarts) == 3


def test_an_approval_is_by_the_hash_that_is_told() -> None:
    first = said(cluster(rollout={"approval": "Manual"}), [0, 1, 2], seen(0, 1, 2), survey())
    approved = {"kavka.dev/approve-rollout": first.plan}
    again = said(
        cluster(metadata={"annotations": approved}, rollout={"approval": "Manual"}), [0, 1, 2], seen(0, 1, 2), survey()
    )
    assert (again.waits, again.plan) == ((), first.plan)


def test_a_node_that_only_another_version_would_change_is_left_out() -> None:
    told = said(cluster(), [0, 1, 2], seen(0, 1, 2, is_as_asked=True), survey())
    assert told.restarts == ()


def test_a_node_that_goes_is_emptied_and_its_bytes_are_counted() -> None:
    there = seen(0, 1, 2, 3, mark="new")
    parts = [at("t", 0, 3, 1), at("t", 1, 1, 2), at("t", 2, 2, 3)]
    told = said(cluster(), [0, 1, 2], there, survey(*parts), sizes={("t", 0): 10, ("t", 2): 5})
    assert [(node.node, node.replicas, node.size) for node in told.drains] == [(3, 2, 15)]
    assert told.refused == ()


def pods(*ids: int, **fields: Any) -> tuple[list[WantedNode], dict[int, SeenNode]]:
    """Brokers of a pool whose volumes end with their pods: as they are wanted, and as they are."""
    wanted = [WantedNode(number, "new", roles=("broker",), pool="brokers", is_ephemeral=True) for number in ids]
    return wanted, {number: replace(node, life=f"uid-{number}") for number, node in seen(*ids, **fields).items()}


def test_nodes_whose_volumes_end_with_their_pods_copy_their_replicas_again() -> None:
    wanted, there = pods(1, 2, 3)
    parts = survey(at("t", 0, 1, 2), at("t", 1, 2, 3), at("u", 0, 4, 3), voters=())
    told = forecast(cluster(), wanted, there, live(1, 2, 3), parts, NOW, sizes={("t", 0): 10, ("u", 0): 5})
    assert told.empties == (Emptied("brokers", (1, 2, 3), 5, 25),)
    assert (len(told.restarts), told.waits) == (3, ())
    untold = replace(parts, doubt="its brokers were not asked")
    assert forecast(cluster(), wanted, there, live(1, 2, 3), untold, NOW).empties == (
        Emptied("brokers", (1, 2, 3), None, None),
    )


def test_only_a_pod_that_restarts_and_in_which_something_has_run_is_emptied() -> None:
    wanted, there = pods(1, 2, 3, 4)
    there[2] = replace(there[2], is_gated=True)
    there[3] = replace(there[3], has_begun=False)
    there[4] = replace(there[4], fingerprint="new", changed=())
    told = forecast(cluster(), wanted, there, live(1, 2, 3, 4), survey(voters=()), NOW)
    assert [pool.nodes for pool in told.empties] == [(1,)]
    assert said(cluster(), [1], seen(1), survey(voters=())).empties == (), "volumes that outlive a pod keep the records"


def test_a_node_that_the_roll_leaves_as_it_alone_has_records_waits_for_a_person() -> None:
    wanted, there = pods(1, 2)
    parts = survey(at("alone", 0, 2), at("t", 0, 1, 2), voters=())
    told = forecast(cluster(), wanted, there, live(1, 2), parts, NOW)
    (words,) = told.waits
    assert words.startswith(
        "broker 2 would come back empty: its volumes end with its pod, and no other replica of alone-0"
    )
    assert words.endswith("kavka.dev/forget-volumes=uid-2")
    assert told.empties == (Emptied("brokers", (1, 2), 2, None),), "what is alone on a node is copied by nobody"


def test_a_node_that_cannot_be_emptied_is_refused() -> None:
    there = seen(0, 1, mark="new")
    told = said(cluster(), [0], there, survey(at("t", 0, 0, 1), voters=(0,)))
    assert told.refused[0].startswith("ShrinkRefused: t-0: more replicas than brokers that stay and serve (1)")


def test_controllers_that_go_lose_their_votes_before() -> None:
    directories = {number: f"id{number}" for number in range(5)}
    told = said(cluster(), [0, 1, 2], seen(0, 1, 2, 3, 4, mark="new"), survey(voters=range(5), directories=directories))
    assert (told.voting, told.voteless, told.refused) == ((), (3, 4), ())


def test_a_volume_that_holds_something_is_not_taken_out_and_a_small_one_grows() -> None:
    held = {0: [SeenVolume("old", "/old", ("t-0",))]}
    told = said(cluster(), [0], {}, survey(), volumes=held)
    assert told.refused[0].startswith('VolumeRefused: volume "old" of node 0 holds 1 replica')
    grown = {0: [SeenVolume("data", "claim", None, grows_to=2048)]}
    told = forecast(
        cluster(), [WantedNode(0, "new", volumes=("data",))], seen(0, mark="new"), live(0), survey(), NOW, grown
    )
    assert [(action.volume, action.size) for action in told.grows] == [("data", 2048)]


def test_without_brokers_the_status_tells_the_order_and_nothing_is_made_up() -> None:
    status = {"nodes": [{"id": number, "state": "Running", "roles": ["broker"]} for number in range(3)]}
    before = KafkaCluster.decode({**cluster().to_dict(), "status": {**status, "activeController": 1}})
    seen_cluster, found = as_told(before)
    there = seen(0, 1, 2, 3)
    told = forecast(cluster(), nodes(0, 1, 2), there, seen_cluster, found, NOW)
    assert waves(told) == [[0], [2], [1]]
    assert (told.at_risk, told.in_the_way) == ((), ())
    assert [(node.node, node.replicas, node.size) for node in told.drains] == [(3, None, None)]


def test_a_reassignment_copies_what_a_broker_does_not_have() -> None:
    there = SeenTopic("t", "id", 2, 2, assignment={0: (0, 1), 1: (1, 2)})
    move = MoveReplicas("t", 3, {0: (0, 1, 2), 1: (1, 2, 0)})
    assert bytes_to_copy(move, there, {("t", 0): 100, ("t", 1): 7}) == 107
