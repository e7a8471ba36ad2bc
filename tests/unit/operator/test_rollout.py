"""A roll, step by step: the order, what it waits for, what it says, what stops it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kavka_operator.api.cluster import KafkaCluster, Window
from kavka_operator.api.cluster_status import LastRolloutStatus, RolloutStatus
from kavka_operator.domain.cluster_view import View
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
from kavka_operator.domain.plan import ClusterPlan, ElectLeaders, Plan, RestartNode, Word, reconciling, unknown
from kavka_operator.reconcile.cluster import reconcile
from kavka_operator.reconcile.notices import notices
from kavka_operator.reconcile.rollout.check import at_risk, obstacles
from kavka_operator.reconcile.rollout.diagnose import Standing, diagnose
from kavka_operator.reconcile.rollout.plan import plan, plan_hash
from kavka_operator.reconcile.rollout.roll import APPROVE, HOLD_NODES, is_on, roll
from kavka_operator.reconcile.rollout.windows import is_open
from kavka_operator.reconcile.status import PassResult, cluster_status
from tests.unit.operator.fakes import NOW, cluster

NODES = [WantedNode(number, "new") for number in range(3)]
LIVE = SeenCluster("id", 0, {number: SeenBroker(number, "a:1") for number in range(3)})
QUORUM = SeenQuorum(0, (0, 1, 2), {1: 400, 2: 0})


def partition(
    isr: tuple[int, ...] = (0, 1, 2),
    *,
    leader: int | None = 0,
    replicas: tuple[int, ...] = (0, 1, 2),
    in_sync_min: int = 2,
    index: int = 7,
) -> SeenPartition:
    return SeenPartition("orders", index, leader, replicas, isr, in_sync_min)


def survey(*partitions: SeenPartition, quorum: SeenQuorum = QUORUM) -> Survey:
    return Survey(partitions or (partition(),), quorum)


def nodes(*fingerprints: str, **states: NodeState) -> dict[int, SeenNode]:
    """Running nodes; `n1="Failed"` says otherwise of one."""
    return {
        number: SeenNode(number, states.get(f"n{number}", "Running"), fingerprint, changed=("num.partitions",))
        for number, fingerprint in enumerate(fingerprints)
    }


def rolling(
    status: RolloutStatus | None = None, *, metadata: dict[str, Any] | None = None, **rollout: Any
) -> KafkaCluster:
    made = cluster(metadata=metadata, rollout=rollout)
    signed = status.signed() if status is not None else None
    return made.replaced({"status": made.status.replaced({"rollout": signed})})


def step(
    seen: dict[int, SeenNode],
    look: Survey | None = None,
    wanted: KafkaCluster | None = None,
    live: SeenCluster | None = LIVE,
    now: Any = NOW,
) -> ClusterPlan:
    found = roll(wanted or rolling(), NODES, seen, live, look or survey(), now)
    assert found is not None
    return found


def words(found: ClusterPlan) -> str:
    return found.words[0].message


def test_the_first_node_restarts_and_the_status_says_how_far_the_roll_is() -> None:
    found = step(nodes("old", "old", "old"))
    assert found.actions == (RestartNode(1, "num.partitions has changed"),)
    assert words(found) == "0 of 3 nodes restarted; restart node 1: num.partitions has changed"
    assert found.rollout == RolloutStatus(plan=plan_hash(NODES), progress="0/3", total=3, current=(1,)).signed()


def test_the_active_controller_goes_last_and_what_does_not_serve_first() -> None:
    def order(seen: dict[int, SeenNode], live: SeenCluster = LIVE) -> list[int]:
        return [each.id for each in plan(NODES, diagnose(NODES, seen, live, survey()), survey()).order]

    assert order(nodes("old", "old", "old")) == [1, 2, 0]
    lone = SeenCluster("id", 0, {0: SeenBroker(0, "a:1"), 1: SeenBroker(1, "a:1")})
    assert order(nodes("old", "old", "old"), lone) == [2, 1, 0], "2 runs, but is no member"
    assert order(nodes("old", "old", "old", n0="Failed")) == [0, 1, 2]


def test_nothing_is_begun_while_a_node_is_on_its_way() -> None:
    begun = rolling(RolloutStatus(plan=plan_hash(NODES), total=3, current=(1,)))
    found = step(nodes("old", "old", "old", n1="Stopping"), wanted=begun)
    assert (found.actions, words(found)) == (
        (),
        "0 of 3 nodes restarted; waits (since 12:00:00Z): broker 1 is stopping",
    )
    found = step(nodes("old", "new", "old", n1="Starting"), wanted=begun)
    assert (found.actions, words(found)[-21:]) == ((), "; broker 1 is starting"[-21:])


def test_a_restarted_node_is_back_once_it_is_in_every_isr_and_has_caught_up() -> None:
    behind = survey(partition((0, 2)), partition((0, 2), index=8), quorum=SeenQuorum(0, (0, 1, 2), {1: 9_000, 2: 0}))
    (found,) = [each for each in diagnose(NODES, nodes("old", "new", "old"), LIVE, behind) if each.id == 1]
    assert found.standing is Standing.RETURNING
    assert found.words == (
        "is not in sync yet with orders-7, orders-8; has not caught up with the active controller yet"
    )
    lone = SeenCluster("id", 0, {0: SeenBroker(0, "a:1"), 2: SeenBroker(2, "a:1")})
    seen = {1: SeenNode(1, "Running", "new", obstacles=("log directories are being loaded",))}
    (found,) = diagnose(NODES, seen, lone, behind)
    assert found.words == "has not joined yet, or is fenced (log directories are being loaded)"


def test_partitions_without_a_leader_hold_up_no_roll() -> None:
    """Nothing is copied to a node from a partition that nobody leads, and nothing is taken from one."""
    dead = partition((), leader=None, replicas=(1,), in_sync_min=1, index=0)
    both = partition((), leader=None, replicas=(0, 1), index=1)
    found = diagnose(NODES, nodes("old", "new", "old"), LIVE, survey(dead, both, partition()))
    assert [diagnosis.standing for diagnosis in found] == [Standing.STALE, Standing.CURRENT, Standing.STALE]
    assert step(nodes("old", "new", "old"), survey(dead, both, partition())).actions[0] == RestartNode(
        2, "num.partitions has changed"
    )
    assert obstacles({1}, survey(dead, both, partition())) == []


def test_a_partition_that_waits_for_the_node_that_was_restarted_holds_up_the_roll() -> None:
    waits = replace(partition((), leader=None, replicas=(1,), in_sync_min=1, index=0), elr=(1,))
    found = step(nodes("old", "new", "old"), survey(waits, partition()))
    assert found.actions == ()
    assert "broker 1 is not in sync yet with orders-0" in words(found)
    both = replace(partition((), leader=None, replicas=(0, 1), index=1), elr=(0,))
    assert obstacles({0}, survey(both)) != []


def test_a_node_that_is_back_leads_its_preferred_partitions_again() -> None:
    begun = rolling(RolloutStatus(plan=plan_hash(NODES), total=3, current=(0,)))
    found = step(nodes("new", "old", "old"), survey(partition(leader=1)), begun)
    assert found.actions == (ElectLeaders((("orders", 7),)),)
    assert words(found) == "1 of 3 nodes restarted; orders-7 back to where they are to be led"


def test_the_next_node_restarts_once_the_first_is_back() -> None:
    begun = rolling(RolloutStatus(plan=plan_hash(NODES), total=3, current=(1,)))
    found = step(nodes("old", "new", "old"), wanted=begun)
    assert found.actions == (RestartNode(2, "num.partitions has changed"),)
    assert found.rollout is not None
    assert (found.rollout.done, found.rollout.current) == (1, (2,))


def test_a_roll_without_nodes_left_is_over() -> None:
    begun = rolling(RolloutStatus(plan=plan_hash(NODES), total=3, current=(0,)))
    assert is_on(begun, NODES, nodes("new", "new", "new"))
    assert roll(begun, NODES, nodes("new", "new", "new"), LIVE, survey(), NOW) is None
    assert not is_on(rolling(), NODES, nodes("new", "new", "new"))
    last = step(nodes("new", "new", "new"), survey(partition((1, 2))), begun)
    assert words(last).endswith(
        "2 of 3 nodes restarted; waits (since 12:00:00Z): broker 0 is not in sync yet with orders-7"
    )


def test_settings_that_change_back_before_a_cluster_has_formed_are_no_roll() -> None:
    forming = SeenCluster("id", 0, {0: SeenBroker(0, "a:1")})
    of_others = RolloutStatus(plan="former", progress="0/3", total=3)
    of_none = RolloutStatus(plan=plan_hash(NODES), progress="0/0", blocked_by=("broker 1 has not joined yet",))
    for status in (of_others, of_none):
        assert roll(rolling(status), NODES, nodes("new", "new", "new"), forming, survey(), NOW) is None
        found = reconcile(rolling(status), NODES, nodes("new", "new", "new"), forming, survey(), NOW)
        assert found.words[0].reason == "Registering"


def test_a_roll_waits_for_a_partition_and_says_since_when() -> None:
    thin = survey(partition((0, 1)))
    found = step(nodes("old", "old", "old"), thin)
    assert found.actions == ()
    assert words(found) == (
        "0 of 3 nodes restarted; waits (since 12:00:00Z): broker 1 may not go down:"
        " orders-7 has 2 of 3 replicas in sync (missing 2) and needs 2 without it"
    )
    later = step(nodes("old", "old", "old"), thin, rolling(found.rollout), now=NOW + timedelta(hours=3))
    assert later.rollout is not None
    assert later.rollout.blocked_since == NOW
    assert words(later) == words(found), "a status that waits is not written again and again"


def test_a_roll_waits_for_the_controllers() -> None:
    lagging = SeenQuorum(0, (0, 1, 2), {1: 0, 2: None})
    assert obstacles({1}, survey(quorum=lagging)) == [
        "of 2 other controllers 2 must have all that was decided (behind: 2)"
    ]
    assert obstacles({2}, survey(quorum=lagging)) == []


def test_no_batch_takes_the_majority_of_the_controllers() -> None:
    five = survey(quorum=SeenQuorum(0, (0, 1, 2, 3, 4), dict.fromkeys(range(5), 0)))
    assert obstacles({3, 4}, five) == []
    assert obstacles({2, 3, 4}, five) == ["of 2 other controllers 3 must have all that was decided"]


def test_a_broker_that_does_not_come_back_stops_the_roll() -> None:
    seen = nodes("old", "new", "old")
    seen[1] = SeenNode(1, "Failed", "new", message="died 2 times in a row")
    found = step(seen)
    assert found.actions == ()
    assert found.words[0].reason == "RolloutStopped"
    assert words(found) == (
        "broker 1 did not come back: died 2 times in a row; nodes 0, 2 keep their former settings;"
        " mend the settings and apply them again"
    )
    mended = [WantedNode(number, "mended") for number in range(3)]
    again = roll(rolling(), mended, seen, LIVE, survey(), NOW)
    assert again is not None
    assert [action.node for action in again.actions if isinstance(action, RestartNode)] == [1]


@pytest.mark.parametrize(
    ("replicas", "isr", "in_sync_min", "without", "free", "risk"),
    [
        ((0, 1, 2), (0, 1, 2), 2, 1, True, False),
        ((0, 1, 2), (0, 1), 2, 1, False, False),
        ((0, 1, 2), (0, 1), 2, 2, True, False),  # not in sync: nothing is taken away
        ((0, 1, 2), (0,), 2, 2, False, False),  # too few already: it is not the time
        ((0, 1, 2), (0, 1), 1, 1, True, False),
        ((0, 1), (0, 1), 2, 1, True, True),  # never possible, so every other replica has to be in sync
        ((0, 1), (1,), 2, 1, False, True),
        ((1,), (1,), 1, 1, True, True),
        ((1,), (1,), 2, 1, True, True),
        ((0, 2), (0,), 2, 1, True, False),  # none of its partitions
    ],
)
def test_which_partitions_stand_in_the_way(
    replicas: tuple[int, ...], isr: tuple[int, ...], in_sync_min: int, without: int, free: bool, risk: bool
) -> None:
    look = survey(partition(isr, replicas=replicas, in_sync_min=in_sync_min))
    assert (obstacles({without}, look) == []) == free
    assert at_risk([without], look) == (["orders-7"] if risk else [])


def test_partitions_at_risk_are_named_in_a_line_a_topic() -> None:
    places = (*(("orders", index) for index in (9, 0, 3, 2, 4)), ("flights", 7))
    look = survey(*(SeenPartition(topic, index, 1, (1,), (1,)) for topic, index in places))
    assert at_risk([1], look) == ["orders-0,2..4,9", "flights-7"]


def test_the_last_roll_is_remembered_when_it_is_over() -> None:
    done = RolloutStatus(plan="4711", done=2, total=3, current=(2,))
    ready: ClusterPlan = Plan((), (Word("Ready", "True", "Ready", "3 nodes run"),))
    waits: ClusterPlan = Plan((), reconciling("Rolling", "2 of 3"))

    def after(before: KafkaCluster, plan: ClusterPlan, now: datetime = NOW) -> LastRolloutStatus | None:
        return cluster_status(before, View(NODES, nodes("a", "a", "a")), PassResult(plan, now, LIVE)).last_rollout

    rolled = after(rolling(done), ready)
    assert rolled == LastRolloutStatus(plan="4711", nodes=3, end_time=NOW)
    assert after(rolling(done), waits) is None, "it is not known to be over"
    assert after(rolling(RolloutStatus(plan="4711", total=3)), ready) is None, "it never began"
    later = rolling().replaced({"status": rolling().status.replaced({"last_rollout": rolled})})
    assert after(later, ready, NOW + timedelta(hours=1)) == rolled


def test_a_lone_controller_is_at_risk_and_no_obstacle() -> None:
    alone = survey(quorum=SeenQuorum(1, (1,), {}))
    assert (obstacles({1}, alone), at_risk([1], alone)) == ([], ["the controllers"])


def test_nodes_that_do_not_run_are_restarted_at_once() -> None:
    found = step(nodes("old", "old", "old", n2="Failed"), survey(partition((0, 1))))
    assert [action.node for action in found.actions if isinstance(action, RestartNode)] == [2]


def test_a_cluster_that_could_not_start_is_mended_by_the_next_settings() -> None:
    """Nobody answers, as no pod has ever run; so there is nobody to ask, and nothing to lose."""
    waiting = {number: SeenNode(number, "Starting", "old", has_begun=False) for number in range(3)}
    found = roll(rolling(), NODES, waiting, None, None, NOW)
    assert found is not None
    assert [action.node for action in found.actions if isinstance(action, RestartNode)] == [0, 1, 2]
    begun = {number: SeenNode(number, "Starting", "old") for number in range(3)}
    found = roll(rolling(), NODES, begun, None, None, NOW)
    assert found is not None
    assert (found.actions, words(found)[-17:]) == ((), "no broker answers"), "brokers that recover their logs go on"
    held = roll(rolling(hold=True), NODES, waiting, None, None, NOW)
    assert held is not None
    assert held.actions == ()


def test_a_person_can_hold_and_approve_it() -> None:
    old = nodes("old", "old", "old")
    held = step(old, wanted=rolling(hold=True))
    assert (held.actions, held.words[0].reason) == ((), "RolloutHeld")
    waits = step(old, wanted=rolling(approval="Manual"))
    assert (waits.actions, waits.words[0].reason) == ((), "RolloutWaits")
    assert f"nodes 1, 2, 0 for the annotation {APPROVE}={plan_hash(NODES)}" in words(waits)
    approved = rolling(metadata={"annotations": {APPROVE: plan_hash(NODES)}}, approval="Manual")
    assert step(old, wanted=approved).actions
    assert step(nodes("old", "new", "old"), wanted=approved).actions, "an approval is good for the whole roll"
    other = [WantedNode(number, "newer") for number in range(3)]
    again = roll(approved, other, old, LIVE, survey(), NOW)
    assert again is not None
    assert not again.actions, "and not for another one"


def test_a_pause_after_each_node() -> None:
    begun = RolloutStatus(plan=plan_hash(NODES), total=3, current=(1,))
    first = step(nodes("old", "new", "old"), wanted=rolling(begun, delaySeconds=60))
    assert (first.actions, words(first)[-55:]) == (
        (),
        "; waits (since 12:00:00Z): until 12:01:00Z (spec.rollout.delaySeconds)"[-55:],
    )
    second = step(
        nodes("old", "new", "old"), wanted=rolling(first.rollout, delaySeconds=60), now=NOW + timedelta(seconds=59)
    )
    assert second.actions == ()
    assert second.rollout is not None
    third = step(
        nodes("old", "new", "old"), wanted=rolling(second.rollout, delaySeconds=60), now=NOW + timedelta(seconds=60)
    )
    assert third.actions == (RestartNode(2, "num.partitions has changed"),)


@pytest.mark.parametrize(
    "edited",
    [
        {"resume_time": NOW + timedelta(days=365)},
        {"total": 1000},
        {"current": (0, 2)},
        {"blocked_since": NOW - timedelta(days=365)},
        {"checksum": None},
    ],
    ids=["a pause of a year", "more nodes", "others on their way", "waits for long", "no checksum"],
)
def test_a_rollout_that_was_edited_by_hand_is_not_gone_on_with(edited: dict[str, Any]) -> None:
    """Also where it went through the API server, which keeps whole seconds; what the operator wrote goes on so."""
    begun = rolling(RolloutStatus(plan=plan_hash(NODES), total=3, current=(1,)), delaySeconds=60)
    pause = step(nodes("old", "new", "old"), wanted=begun).rollout
    assert pause is not None
    kept = RolloutStatus.decode(pause.to_dict())
    assert kept.is_signed
    wanted = begun.replaced({"status": begun.status.replaced({"rollout": kept.replaced(edited)})})
    found = step(nodes("old", "new", "old"), wanted=wanted)
    assert found.actions == (RestartNode(2, "num.partitions has changed"),), "the roll begins to count anew"
    assert found.rollout is not None
    assert (found.rollout.progress, found.rollout.current, found.rollout.is_signed) == ("0/2", (2,), True)


def test_a_rollout_that_was_written_by_hand_at_rest_never_was() -> None:
    forged = RolloutStatus(plan=plan_hash(NODES), done=2, total=3, current=(2,))
    wanted = rolling()
    wanted = wanted.replaced({"status": wanted.status.replaced({"rollout": forged})})
    assert not is_on(wanted, NODES, nodes("new", "new", "new"))
    ready: ClusterPlan = Plan((), (Word("Ready", "True", "Ready", "3 nodes run"),))
    status = cluster_status(wanted, View(NODES, nodes("new", "new", "new")), PassResult(ready, NOW, LIVE))
    assert (status.rollout, status.last_rollout) == (None, None)
    assert [notice.reason for notice in notices(wanted, status)] == []


def test_a_window_is_open_at_its_days_and_times() -> None:
    saturday = Window(days=("Sat",), start_time="11:30", duration_minutes=60)  # NOW is a Saturday, noon
    assert is_open([], NOW)
    assert is_open([saturday], NOW)
    assert not is_open([saturday], NOW + timedelta(minutes=30))
    assert not is_open([saturday], NOW - timedelta(minutes=31))
    long = Window(days=("Thu",), start_time="22:00", duration_minutes=2 * 24 * 60)
    assert is_open([long], NOW)
    berlin = Window(days=("Sat",), start_time="13:00", duration_minutes=60, time_zone="Europe/Berlin")
    assert [is_open([berlin], NOW + timedelta(minutes=minutes)) for minutes in (-1, 0, 59, 60)] == [
        False,
        True,
        True,
        False,
    ]
    summer = datetime(2026, 7, 25, 11, tzinfo=UTC)
    assert [is_open([berlin], summer + timedelta(minutes=minutes)) for minutes in (-1, 0, 60)] == [False, True, False]
    closed = rolling(windows=[{"days": ["Sun"], "startTime": "02:00", "durationMinutes": 60}])
    found = step(nodes("old", "old", "old"), wanted=closed)
    assert (found.actions, found.words[0].reason) == ((), "RolloutWaits")
    assert words(found).endswith("nodes 1, 2, 0 for a window: Sun 02:00 UTC for 60 min")


def test_a_window_in_an_unknown_time_zone_is_never_open_and_is_told() -> None:
    nowhere = Window(days=("Sat",), start_time="00:00", duration_minutes=1440, time_zone="Europe/Nowhere")
    assert not is_open([nowhere], NOW)
    assert is_open([nowhere, Window(days=("Sat",), start_time="00:00", duration_minutes=1440)], NOW)
    found = reconcile(rolling(windows=[nowhere.to_dict()]), NODES, nodes("new", "new", "new"), LIVE, survey(), NOW)
    assert found.words[0].reason == "BadConfig"
    assert 'there is no time zone "Europe/Nowhere"' in found.words[0].message


def test_a_roll_that_waits_for_somebody_leaves_the_cluster_ready() -> None:
    found = reconcile(rolling(hold=True), NODES, nodes("old", "old", "old"), LIVE, survey(), NOW)
    assert [(word.type, word.status, word.reason) for word in found.words] == [
        ("Ready", "True", "Ready"),
        ("RolloutPending", "True", "RolloutHeld"),
    ]
    assert found.is_at_rest
    assert found.rollout is not None
    assert found.rollout.progress == "0/3"
    status = cluster_status(
        rolling(hold=True), View(NODES, nodes("old", "old", "old")), PassResult(found, NOW, LIVE, survey=survey())
    )
    assert [(each.type, each.status) for each in status.conditions] == [
        ("Ready", "True"),
        ("RolloutPending", "True"),
        ("Available", "True"),
    ]


def test_whether_clients_can_use_a_cluster_is_said_beside_whether_it_is_as_wanted() -> None:
    going = step(nodes("old", "old", "old"))
    lost = survey(partition((0,), leader=None))
    for seen, looked, expected in (
        (LIVE, survey(), ("True", "Serving")),
        (LIVE, lost, ("False", "Offline")),
        (None, None, ("False", "NotAnswering")),
    ):
        status = cluster_status(rolling(), View(NODES), PassResult(going, NOW, seen, survey=looked))
        found = status.condition("Available")
        assert found is not None
        assert (found.status, found.reason) == expected
    stopped = cluster_status(rolling(), View(NODES), PassResult(Plan(words=unknown("Stopped", "not running")), NOW))
    assert [(each.type, each.status) for each in stopped.conditions] == [("Ready", "Unknown"), ("Available", "Unknown")]


def test_several_at_a_time_only_where_they_share_nothing() -> None:
    wide = rolling(maxConcurrent=2)
    apart = survey(partition(replicas=(1, 0), isr=(1, 0), leader=1, in_sync_min=1), quorum=SeenQuorum(9, (9,), {}))
    actions = step(nodes("old", "old", "old"), apart, wide).actions
    assert [action.node for action in actions if isinstance(action, RestartNode)] == [0, 2]
    assert len(step(nodes("old", "old", "old"), wanted=wide).actions) == 1


def holding(text: str) -> KafkaCluster:
    return rolling(metadata={"annotations": {HOLD_NODES: text}})


def test_a_single_node_can_be_held() -> None:
    old = nodes("old", "old", "old")
    assert step(old, wanted=holding("1")).actions == (RestartNode(2, "num.partitions has changed"),)
    last = step(nodes("new", "old", "new"), wanted=holding("1, 0"))
    assert (last.actions, last.words[0].type, last.words[0].reason) == ((), "RolloutPending", "RolloutHeld")
    assert words(last).endswith(f"node 1 for the end of the annotation {HOLD_NODES}")
    down = step(nodes("old", "old", "old", n1="Failed"), wanted=holding("1"))
    assert [action.node for action in down.actions if isinstance(action, RestartNode)] == [2]


def test_all_nodes_are_held_by_one_word() -> None:
    found = step(nodes("old", "old", "old", n1="Failed"), wanted=holding("all"))
    assert (found.actions, found.words[0].reason) == ((), "RolloutHeld")
    assert words(found).endswith(f"nodes 1, 2, 0 for the end of the annotation {HOLD_NODES}")


def test_a_roll_waits_for_those_of_other_clusters_and_a_dead_node_does_not() -> None:
    waiting = {
        n: replace(node, queued="the end of the roll of shop/a") for n, node in nodes("old", "new", "new").items()
    }
    found = step(waiting)
    assert found.actions == ()
    assert [(word.type, word.reason) for word in found.words] == [("RolloutPending", "RolloutWaits")]
    assert "waits" in found.words[0].message
    assert "node 0 for the end of the roll of shop/a" in found.words[0].message
    dead = {**waiting, 0: replace(waiting[0], state="Failed")}
    assert step(dead).actions == (RestartNode(0, "num.partitions has changed"),)


def test_a_hold_that_names_no_node_holds_all_and_says_so() -> None:
    found = step(nodes("old", "old", "old"), wanted=holding("1 7"))
    assert (found.actions, found.words[0].reason) == ((), "RolloutHeld")
    assert words(found).endswith(
        f'the annotation {HOLD_NODES} names "7", which is no node; write ids of 0, 1, 2, or all'
    )


@pytest.mark.parametrize("state", ["Running", "Failed"])
def test_a_node_that_would_come_back_empty_is_left_alone_and_told(state: NodeState) -> None:
    seen = nodes("old", "old", "new", n0=state)
    seen[0] = replace(seen[0], going=("data-main-nodes-0",))
    assert step(seen).actions == (RestartNode(1, "num.partitions has changed"),), "the others go first"
    seen[1] = replace(seen[1], fingerprint="new")
    found = step(seen)
    assert (found.actions, found.words[0].type, found.words[0].reason) == ((), "RolloutPending", "RolloutHeld")
    assert words(found).endswith(
        "would come back empty: data-main-nodes-0 is marked for deletion; delete its pod when that may be"
    )
