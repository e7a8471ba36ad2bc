"""Which controllers vote: one change at a time, and what it waits for."""

from collections.abc import Sequence

from kavka_operator.api.cluster_status import RolloutStatus
from kavka_operator.domain.observed import (
    ControllerPlace,
    NodeState,
    SeenBroker,
    SeenCluster,
    SeenNode,
    SeenObserver,
    SeenQuorum,
    Survey,
    WantedNode,
)
from kavka_operator.domain.plan import AddVoter, CordonNode, RemoveVoter, StopNode, VoterAction
from kavka_operator.reconcile import cluster as clusters
from kavka_operator.reconcile import quorum
from tests.unit.operator.fakes import NOW, cluster, cordoning


def directory(number: int) -> str:
    return f"directory-{number}"


def wanted(*ids: int, fresh: Sequence[int] = ()) -> list[WantedNode]:
    """Controllers; those that are `fresh` have lost their volume and have a new one."""
    return [
        WantedNode(
            number,
            "new",
            controller=ControllerPlace(
                f"new-{number}" if number in fresh else directory(number), f"host-{number}", 9093
            ),
        )
        for number in ids
    ]


def quorum_of(
    *voters: int, leader: int = 0, away: Sequence[int] = (), observers: Sequence[SeenObserver] = ()
) -> Survey:
    behind = {voter: None if voter in away else 0 for voter in voters}
    return Survey(
        (), SeenQuorum(leader, voters, behind, {voter: directory(voter) for voter in voters}, tuple(observers))
    )


def running(*ids: int, state: NodeState = "Running") -> dict[int, SeenNode]:
    return {number: SeenNode(number, state, "new") for number in ids}


def step(
    nodes: Sequence[WantedNode], survey: Survey, rollout: RolloutStatus | None = None
) -> tuple[VoterAction | None, str]:
    """The next change and its words."""
    plan = quorum.follow(nodes, running(*(node.id for node in nodes)), survey, rollout)
    if plan is None:
        return None, ""
    (action,) = plan.actions or (None,)
    assert isinstance(action, AddVoter | RemoveVoter | None)
    return action, plan.words[0].message


def observer(number: int, behind_ms: int | None = 0, lag: int = 0, named: str = "") -> SeenObserver:
    return SeenObserver(number, named or directory(number), behind_ms, lag)


def test_voters_that_are_as_wanted_are_left_alone() -> None:
    assert step(wanted(0, 1, 2), quorum_of(0, 1, 2)) == (None, "")


def test_a_controller_that_has_caught_up_gets_a_vote() -> None:
    action, words = step(wanted(0, 1, 2, 3, 4), quorum_of(0, 1, 2, observers=[observer(3), observer(4)]))
    assert action == AddVoter(3, "directory-3", "host-3", 9093)
    assert (
        words
        == "controllers 0, 1, 2 vote, and 0, 1, 2, 3, 4 shall; give controller 3 a vote, with directory directory-3"
    )


def test_one_that_is_behind_or_unheard_is_waited_for() -> None:
    action, words = step(wanted(0, 1, 2, 3, 4), quorum_of(0, 1, 2, observers=[observer(3, 9000, 417)]))
    assert action is None
    assert words.endswith(
        "waits: controller 3 is 417 records behind the active one; controller 4 does not fetch the metadata log yet"
    )


def test_a_lost_volume_loses_its_vote_before_the_new_one_gets_one() -> None:
    lost = quorum_of(0, 1, 2, away=[2], observers=[observer(2, named="new-2")])
    assert step(wanted(0, 1, 2, fresh=[2]), lost)[0] == RemoveVoter(2, "directory-2")
    healed = quorum_of(0, 1, observers=[observer(2, named="new-2")])
    assert step(wanted(0, 1, 2, fresh=[2]), healed)[0] == AddVoter(2, "new-2", "host-2", 9093)


def test_a_lost_volume_of_two_voters_cannot_be_healed_and_says_so() -> None:
    action, words = step(wanted(0, 1, fresh=[1]), quorum_of(0, 1, 2, away=[1, 2]))
    assert action is None
    assert words.startswith("controllers 0, 1, 2 vote, and 0, 1 shall; waits: of controllers 0, 2 2 must keep up")
    assert words.endswith(" with the active one (behind: 2)")
    assert step(wanted(0, fresh=[0]), quorum_of(0))[1].endswith("waits: controller 0 is the only voter")


def test_voters_that_are_not_wanted_go_one_by_one_the_active_one_last() -> None:
    assert step(wanted(0, 1, 2), quorum_of(0, 1, 2, 3, 4, leader=3))[0] == RemoveVoter(4, "directory-4")
    assert step(wanted(0, 1, 2), quorum_of(0, 1, 2, 3, leader=3))[0] == RemoveVoter(3, "directory-3")


def test_one_that_is_away_and_not_wanted_goes_before_anything_else() -> None:
    survey = quorum_of(0, 1, 2, away=[2], observers=[observer(3)])
    assert step(wanted(0, 1, 3), survey)[0] == RemoveVoter(2, "directory-2")


def test_one_that_keeps_up_stays_until_every_wanted_one_votes() -> None:
    action, words = step(wanted(0, 1, 3), quorum_of(0, 1, 2))
    assert action is None
    assert words.endswith("waits: controller 3 does not fetch the metadata log yet")


def test_no_vote_is_taken_from_a_majority_that_needs_it() -> None:
    action, words = step(wanted(0, 1), quorum_of(0, 1, 2, away=[1]))
    assert action is None
    assert words.endswith("waits: of controllers 0, 1 2 must keep up with the active one (behind: 1)")


def test_nothing_changes_while_a_roll_has_taken_a_node_down() -> None:
    survey, nodes = quorum_of(0, 1, 2, observers=[observer(3)]), wanted(0, 1, 2, 3)
    seen = {**running(0, 1, 3), **running(2, state="Starting")}
    plan = quorum.follow(nodes, seen, survey, RolloutStatus(current=(2,)))
    assert plan is not None
    assert (plan.actions, plan.rollout) == ((), RolloutStatus(current=(2,)))
    assert plan.words[0].message.endswith("waits: node 2 is being restarted")
    assert step(nodes, survey, RolloutStatus(current=(2,)))[0] == AddVoter(3, "directory-3", "host-3", 9093)


def test_nothing_changes_on_a_word_that_is_not_believed() -> None:
    doubted = Survey((), quorum_of(0, 1, 2, observers=[observer(3)]).quorum, "only 1 of 3 controllers keep up")
    assert step(wanted(0, 1, 2, 3), doubted)[1].endswith("waits: only 1 of 3 controllers keep up")


def test_voters_that_stand_in_every_configuration_are_left_alone() -> None:
    static = Survey((), SeenQuorum(0, (0, 1), {1: 0}))
    assert step(wanted(0, 1, 2), static) == (None, "")
    assert step([*wanted(0, 1), WantedNode(2, "new")], quorum_of(0, 1)) == (None, "")


def test_a_vote_goes_before_its_node_does() -> None:
    live = SeenCluster("id", 0, {number: SeenBroker(number, "a:1") for number in range(4)})
    there = running(0, 1, 2, 3)
    plan = clusters.reconcile(cluster(), wanted(0, 1, 2), there, live, quorum_of(0, 1, 2, 3), NOW)
    assert plan.actions == (RemoveVoter(3, "directory-3"),)
    resource, survey = cordoning(cluster(), 3), quorum_of(0, 1, 2, observers=[observer(3)])
    plan = clusters.reconcile(resource, wanted(0, 1, 2), there, live, survey, NOW)
    assert plan.actions == (CordonNode(3, is_on=False), StopNode(3))


def test_a_roll_goes_on_when_a_restarted_controller_votes_again() -> None:
    live = SeenCluster("id", 0, {number: SeenBroker(number, "a:1") for number in range(3)})
    there = {**running(0), 1: SeenNode(1, "Running", "old"), 2: SeenNode(2, "Running", "old")}
    survey = quorum_of(1, 2, leader=1, observers=[observer(0, 9000, 5)])
    plan = clusters.reconcile(cluster(), wanted(0, 1, 2), there, live, survey, NOW)
    assert plan.actions == ()
    assert plan.words[0].message.endswith("broker 0 has no vote yet")
