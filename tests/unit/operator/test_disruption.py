"""Which nodes others may take away: what a roll might take, and no more than may go together."""

from dataclasses import replace

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
from kavka_operator.reconcile.rollout.disruption import open_ones, why_not

NODES = [WantedNode(number, "new") for number in range(3)]
LIVE = SeenCluster("id", 0, {number: SeenBroker(number, "a:1") for number in range(3)})
QUORUM = SeenQuorum(0, (0, 1, 2), {1: 0, 2: 0})
ALL = (0, 1, 2)


def seen(**states: NodeState) -> dict[int, SeenNode]:
    return {number: SeenNode(number, states.get(f"n{number}", "Running"), "new") for number in ALL}


def survey(isr: tuple[int, ...] = ALL, minimum: int = 2, quorum: SeenQuorum = QUORUM) -> Survey:
    return Survey((SeenPartition("orders", 7, isr[0], ALL, isr, minimum),), quorum)


def live(*brokers: int) -> SeenCluster:
    return replace(LIVE, brokers={number: LIVE.brokers[number] for number in brokers})


def test_one_may_go_while_all_serve_the_active_controller_last() -> None:
    reasons = why_not(NODES, seen(), LIVE, survey())
    assert reasons == {0: "node 1 may go first", 1: "", 2: "node 1 may go first"}
    assert open_ones(reasons) == {1}


def test_the_one_whose_machine_is_to_be_emptied_goes_first() -> None:
    assert open_ones(why_not(NODES, seen(), LIVE, survey(), asked={2})) == {2}
    assert open_ones(why_not(NODES, seen(), LIVE, survey(), asked={0})) == {0}


def test_none_goes_whose_volume_was_deleted_and_lasts_as_long_as_its_pod() -> None:
    going = {**seen(), 1: SeenNode(1, "Running", "new", going=("data-main-nodes-1",))}
    reasons = why_not(NODES, going, LIVE, survey())
    assert open_ones(reasons) == {2}
    assert reasons[1] == "broker 1 would come back empty: data-main-nodes-1 is marked for deletion"
    crashing = {**going, 1: replace(going[1], state="Failed")}
    assert open_ones(why_not(NODES, crashing, LIVE, survey(isr=(0, 2)))) == set()


def test_none_goes_that_a_partition_needs() -> None:
    reasons = why_not(NODES, seen(), LIVE, survey(isr=(0, 1)))
    assert reasons[1] == "node 2 is away", "it runs, and has not caught up"
    assert open_ones(reasons) == {2}, "nobody counts on it"
    assert open_ones(why_not(NODES, seen(), LIVE, survey(minimum=3))) == {1}, "what no waiting mends is not waited for"


def test_none_goes_whose_vote_is_needed() -> None:
    lagging = SeenQuorum(0, ALL, {1: 0, 2: None})
    reasons = why_not([WantedNode(0, "new"), WantedNode(1, "new")], seen(), LIVE, survey(quorum=lagging, minimum=1))
    assert open_ones(reasons) == set()
    assert reasons[1] == "of 2 other controllers 2 must have all that was decided (behind: 2)"


def test_while_a_node_is_away_the_others_stay_and_it_may_go() -> None:
    quorum = SeenQuorum(0, ALL, {1: 0, 2: None})
    reasons = why_not(NODES, seen(n2="Starting"), live(0, 1), survey(isr=(0, 1), quorum=quorum))
    assert reasons == {0: "node 2 is away", 1: "node 2 is away", 2: ""}


def test_a_node_that_is_away_and_still_counted_on_stays() -> None:
    reasons = why_not(NODES, seen(n2="Starting"), live(0, 1), survey(isr=ALL, minimum=3))
    assert reasons[2] == "", "three of three cannot be kept: the other two are in sync"
    reasons = why_not(NODES, seen(n2="Starting"), live(0, 1), survey(isr=(1, 2), minimum=2))
    assert reasons[2] == "orders-7 has 2 of 3 replicas in sync (missing 0) and needs 2 without it"
    reasons = why_not(NODES, seen(n2="Stopping"), live(0, 1), survey())
    assert open_ones(reasons) == set(), "it is going already"


def test_an_absent_node_keeps_the_others() -> None:
    there = seen()
    del there[1]
    assert why_not(NODES, there, LIVE, survey()) == dict.fromkeys(ALL, "node 1 is away")


def test_nothing_is_open_without_a_word_that_is_believed() -> None:
    assert open_ones(why_not(NODES, seen(), None, None)) == set()
    assert open_ones(why_not(NODES, seen(), LIVE, replace(survey(), doubt="only 1 of 3"))) == set()


def test_nodes_that_share_no_partition_may_go_together() -> None:
    """Two racks, and every partition in both: nodes of one rack share none."""
    nodes = [WantedNode(number, "new", roles=("broker",)) for number in range(4)]
    brokers = SeenCluster("id", 9, {number: SeenBroker(number, "a:1") for number in range(4)})
    states = {number: SeenNode(number, "Running", "new") for number in range(4)}
    pairs = [(0, 1), (2, 3), (0, 3), (2, 1)]
    partitions = tuple(SeenPartition("t", index, pair[0], pair, pair, 1) for index, pair in enumerate(pairs))
    found = Survey(partitions, SeenQuorum(9, (9,), {}))
    assert open_ones(why_not(nodes, states, brokers, found, most=4)) == {0, 2}
    assert open_ones(why_not(nodes, states, brokers, found, most=4, asked={3})) == {1, 3}
    assert open_ones(why_not(nodes, states, brokers, found, most=1)) == {0}


def test_a_node_that_waits_for_its_roll_may_go_and_comes_back_as_it_was() -> None:
    stale = {**seen(), 1: SeenNode(1, "Running", "old")}
    assert open_ones(why_not(NODES, stale, LIVE, survey())) == {1}
