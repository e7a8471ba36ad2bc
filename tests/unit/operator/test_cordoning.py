"""Nodes that go are cordoned first, after the status says so; who is wanted again takes replicas again."""

from kavka_operator.domain.observed import SeenNode, WantedNode
from kavka_operator.domain.plan import CordonNode, MoveReplicas, Plan, StartNode, StopNode, reconciling, stalled
from kavka_operator.reconcile.cordoning import cordon, marked, marks, release
from tests.unit.operator.fakes import cluster, cordoning

MOVE = MoveReplicas("orders", 2, {0: (1, 0)})
GOING = [SeenNode(2, "Running", "old"), SeenNode(3, "Running", "old")]
LINES = cordoning(cluster(), 2, 3).status.nodes
LIVE = (0, 1, 2, 3)


def test_nothing_is_moved_before_the_status_says_that_the_node_is_cordoned() -> None:
    plan = cordon(Plan((MOVE,), reconciling("Shrinking", "moves")), GOING, LINES[:1], LIVE)
    assert plan.actions == ()
    assert [(word.reason, word.message) for word in plan.words if word.type == "Reconciling"] == [
        ("Shrinking", "node 3: to take no new replicas")
    ]
    assert plan.words[0].status == "False"


def test_nodes_are_cordoned_while_they_are_emptied() -> None:
    words = reconciling("Shrinking", "moves")
    plan = cordon(Plan((MOVE,), words), GOING, LINES, LIVE)
    assert plan == Plan((CordonNode(2, is_on=True), CordonNode(3, is_on=True), MOVE), words)


def test_a_cordon_is_taken_away_just_before_its_node_is_stopped() -> None:
    plan = cordon(Plan((StopNode(3),)), GOING, LINES, LIVE)
    assert plan.actions == (CordonNode(2, is_on=True), CordonNode(3, is_on=False), StopNode(3))


def test_a_broker_that_does_not_answer_is_not_asked() -> None:
    assert cordon(Plan((MOVE,)), GOING, (), (0, 1)).actions == (MOVE,)


def test_where_nothing_is_taken_away_nothing_is_cordoned() -> None:
    for plan in (Plan((StartNode(2),)), Plan(words=stalled("ShrinkRefused", "no room"))):
        assert cordon(plan, GOING, (), LIVE) is plan


def test_who_is_wanted_again_takes_replicas_again() -> None:
    words = reconciling("Registering", "waits")
    assert release(Plan(words=words), {0, 1, 2}, LINES, LIVE) == Plan((CordonNode(2, is_on=False),), words)
    assert release(Plan(words=words), {0, 1, 2}, LINES, (0, 1)) == Plan(words=words)
    assert release(Plan(words=words), {0, 1}, (), LIVE) == Plan(words=words)


def test_marks_stand_until_the_cordon_is_gone() -> None:
    wanted, leaving = [WantedNode(2, "new")], [WantedNode(3, "new"), WantedNode(9, "new", roles=("controller",))]
    assert marked(LINES) == {2, 3}
    assert marks(LINES, wanted, leaving, ()) == {2, 3}
    assert marks(LINES, wanted, leaving, [CordonNode(2, is_on=False), CordonNode(3, is_on=True)]) == {3}
    assert marks(LINES, wanted, [], [MOVE]) == {2}
