"""The rules of consumer groups of the new protocol, in stories of a few heartbeats."""

from dataclasses import replace
from typing import Any

import pytest

from kavka_broker.core.consumer_group import committing
from kavka_broker.core.consumer_group import heartbeat as rules
from kavka_broker.core.consumer_group.checks import Heartbeat, check_heartbeat
from kavka_broker.core.consumer_group.records import replay
from kavka_broker.core.consumer_group.settings import SUBSCRIBED_TOPICS_MAX, ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ConsumerGroup, GroupState, MemberState
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.group.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kavka_broker.protocol.messages.group.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from tests.unit.consumer_group.world import GROUP, World

JOIN = Heartbeat("g", "a", 0, rebalance_timeout_ms=1, topics=(), owned={})
STAYS = Heartbeat("g", "a", 3)

# --- what a heartbeat may say (K1) ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beat", "changes", "code", "words"),
    [
        (JOIN, {"group_id": ""}, ErrorCode.INVALID_REQUEST, "GroupId can't be empty."),
        (JOIN, {"group_id": " "}, ErrorCode.INVALID_REQUEST, "GroupId can't be empty."),
        (JOIN, {"member_id": ""}, ErrorCode.INVALID_REQUEST, "MemberId can't be empty."),
        (JOIN, {"instance_id": ""}, ErrorCode.INVALID_REQUEST, "InstanceId can't be empty."),
        (JOIN, {"rack_id": ""}, ErrorCode.INVALID_REQUEST, "RackId can't be empty."),
        (JOIN, {"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs must be provided"),
        (JOIN, {"owned": None}, ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty"),
        (JOIN, {"owned": {b"t": [0]}}, ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty"),
        (JOIN, {"topics": None}, ErrorCode.INVALID_REQUEST, "Either SubscribedTopicNames or SubscribedTopicRegex"),
        (JOIN, {"server_assignor": "x"}, ErrorCode.UNSUPPORTED_ASSIGNOR, "Supported assignors: uniform, range."),
        (JOIN, {"topics": ["t"] * (SUBSCRIBED_TOPICS_MAX + 1)}, ErrorCode.INVALID_REQUEST, "at most"),
        (STAYS, {"epoch": -2}, ErrorCode.INVALID_REQUEST, "InstanceId can't be null."),
        (STAYS, {"epoch": -3}, ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid."),
    ],
)
def test_a_heartbeat_that_says_too_little_or_too_much_is_refused(
    beat: Heartbeat, changes: dict[str, Any], code: ErrorCode, words: str
) -> None:
    with pytest.raises(BrokerError, match=words) as refused:
        check_heartbeat(replace(beat, **changes), ("uniform", "range"), needs_member_id=True)
    assert refused.value.code is code


@pytest.mark.parametrize(("epoch", "is_fine"), [(0, True), (1, False), (-1, False)], ids=["joins", "stays", "leaves"])
def test_only_who_joins_by_version_0_needs_no_member_id(epoch: int, is_fine: bool) -> None:
    beat = replace(JOIN, member_id="", epoch=epoch)
    if is_fine:
        check_heartbeat(beat, (), needs_member_id=False)
    else:
        with pytest.raises(BrokerError, match="MemberId"):
            check_heartbeat(beat, (), needs_member_id=False)


def test_an_empty_expression_and_no_names_are_a_member_without_topics() -> None:
    check_heartbeat(replace(JOIN, topics=None, regex=""), (), needs_member_id=True)


# --- the next heartbeat (docs/adr/0040) -----------------------------------------------------------------------------


def test_a_member_that_waits_for_its_assignment_heartbeats_sooner() -> None:
    world = World(ConsumerGroupSettings(assignment_interval_ms=1_000), t=4)
    world.join("A")
    world.join("B")

    def beat(name: str) -> int:
        world.beat(name)
        return world.interval_ms

    assert beat("A") == 5_000, "it has everything"
    assert beat("B") == 500, "the next assignment is not due yet"
    world.advance(1_000)
    assert beat("B") == 500, "its partitions are with another member"
    assert beat("A") == 500, "it has to give partitions up"
    assert beat("A") == 5_000
    assert beat("B") == 5_000


@pytest.mark.parametrize(
    ("rebalance_ms", "members", "expected"), [(500, 3, 500), (500, 1_500, 1_500), (500, 9_000, 5_000), (0, 3, 5_000)]
)
def test_many_members_that_wait_ask_a_thousand_times_a_second_at_most(
    rebalance_ms: int, members: int, expected: int
) -> None:
    settings = ConsumerGroupSettings(rebalance_interval_ms=rebalance_ms)
    assert rules.interval_ms(settings, members, is_waiting=True) == expected
    assert rules.interval_ms(settings, members, is_waiting=False) == 5_000


def test_a_step_of_one_member_is_no_large_change_of_a_large_group() -> None:
    world = gathered(50)
    world.advance(500)
    world.settle()
    world.join("one more")
    world.advance(1_000)
    world.beat("one more")
    group, seen = world.group, world.topics.changes
    member_id = world.clients["m1"].member_id
    assert rules.is_large(group, world.topics)
    beat = Heartbeat(GROUP, member_id, group.members[member_id].epoch, "m1", "/127.0.0.1")
    assert (rules.is_steady(group, beat, seen), rules.is_step(group, beat, seen)) == (False, True)
    assert not rules.is_step(group, replace(beat, topics=("u",)), seen), "the epoch moves"
    assert not rules.is_step(group, beat, seen + 1), "topics have changed"
    assert not rules.is_step(group, replace(beat, member_id="unknown"), seen)
    assert not rules.is_step(group, replace(beat, owned={b"t": range(300)}), seen), "it says that it owns very many"
    assert not rules.is_step(replace(group, epoch=group.epoch + 1), beat, seen), "a target may be computed"
    many = dict.fromkeys(range(rules.STEP_PLACES_MAX), member_id)
    assert not rules.is_step(replace(group, owners={b"t" * 16: many}), beat, seen), "a copy of the group takes long"


def test_a_member_that_waits_for_partitions_writes_nothing_at_each_heartbeat() -> None:
    world = World(t=4)
    world.join("A")
    world.settle("A")
    world.join("B")
    for _ in range(2):
        world.beat("B")
    written = len(world.log)
    for _ in range(3):
        world.beat("B")
    assert world.member("B").state is MemberState.UNRELEASED_PARTITIONS
    assert len(world.log) == written


def test_a_member_does_not_take_the_instance_of_another_under_an_id_that_is_in_use() -> None:
    world = World(t=1)
    world.join("A", instance_id="i")
    world.join("B", regex="t")
    world.settle()
    world.leave("A", -2)
    world.clients["B"].forget()
    world.clients["B"].instance_id = "i"
    assert world.beat("B") is ErrorCode.INVALID_REQUEST
    assert world.group.matched.keys() == world.group.expressed.keys()


# --- expressions (K11) ----------------------------------------------------------------------------------------------


def regexes_of(world: World) -> list[str]:
    return sorted(world.group.matched)


def test_an_expression_is_matched_with_the_topics_that_there_are() -> None:
    world = World(t=2, tt=1, u=1)
    world.join("A", regex="t+")
    world.settle("A")
    assert world.owned() == {"A": {"t": [0, 1], "tt": [0]}}
    world.topics.put("ttt", 1)
    world.settle("A")
    assert world.group.epoch == 2, "nothing moves before the topics are matched again"
    world.match()
    world.settle("A")
    assert world.owned() == {"A": {"t": [0, 1], "tt": [0], "ttt": [0]}}
    records, epoch = len(world.log), world.group.epoch
    world.match()
    assert (len(world.log), world.group.epoch) == (records, epoch), "nothing has moved"
    world.topics.delete("tt")
    world.match()
    world.settle("A")
    assert world.owned() == {"A": {"t": [0, 1], "ttt": [0]}}


def test_an_expression_that_matches_nothing_leaves_a_group_in_its_first_epoch() -> None:
    world = World(t=1)
    world.join("A", regex="u")
    world.settle("A")
    assert (world.group.epoch, world.member("A").epoch, world.owned()) == (1, 1, {"A": {}})
    world.topics.put("u", 3)
    world.match()
    world.settle("A")
    assert (world.group.epoch, world.owned()) == (2, {"A": {"u": [0, 1, 2]}})
    world.clients["A"].regex, world.clients["A"].says_all = "v", True
    world.settle("A")
    assert world.owned() == {"A": {}}, "it had topics before, which it has to give up"


def test_an_expression_that_matches_nothing_beside_names_leaves_the_epoch() -> None:
    world = World(t=1)
    world.join("A", "t")
    world.settle("A")
    before = world.group.epoch
    world.clients["A"].regex, world.clients["A"].says_all = "v", True
    world.settle("A")
    assert (world.group.epoch, world.member("A").regex, world.owned()) == (before, "v", {"A": {"t": [0]}})


def test_names_and_an_expression_count_together_and_a_change_of_it_moves_the_epoch() -> None:
    world = World(t=1, u=1, v=1)
    world.join("A", "v", regex="u")
    world.settle("A")
    assert world.owned() == {"A": {"u": [0], "v": [0]}}
    epoch = world.group.epoch
    world.clients["A"].regex, world.clients["A"].says_all = "t", True
    world.settle("A")
    assert world.group.epoch == epoch + 1
    assert world.owned() == {"A": {"t": [0], "v": [0]}}
    assert regexes_of(world) == ["t"], "nobody has the former one any more"
    world.clients["A"].regex, world.clients["A"].says_all = "", True
    world.settle("A")
    assert (world.group.epoch, world.owned()) == (epoch + 2, {"A": {"v": [0]}}), (
        "from an expression to none (KAFKA-19891)"
    )


def test_an_expression_goes_with_its_last_member() -> None:
    world = World(t=4)
    world.join("A", regex="t")
    world.join("B", regex="t")
    world.join("C", regex="t.")
    world.settle()
    assert regexes_of(world) == ["t", "t."]
    world.leave("B")
    assert regexes_of(world) == ["t", "t."]
    world.fence(world.clients["C"].member_id)
    assert regexes_of(world) == ["t"]
    world.leave("A")
    assert (regexes_of(world), world.group.size_bytes) == ([], 0)


def test_a_static_successor_with_another_expression_is_assigned_anew() -> None:
    world = World(t=1, u=1)
    world.join("A", regex="t", instance_id="i")
    world.settle("A")
    world.leave("A", -2)
    world.join("A", regex="u", instance_id="i")
    world.settle("A")
    assert (world.owned(), regexes_of(world)) == ({"A": {"u": [0]}}, ["u"])


def test_expressions_are_matched_again_when_topics_have_changed_and_after_a_while() -> None:
    world = World(t=1)
    world.join("A", regex="t")
    world.settle("A")

    def is_due(after_ms: int) -> bool:
        return rules.is_match_due(world.group, world.topics.changes, world.now_ms + after_ms, 600_000)

    assert not is_due(599_999)
    assert is_due(600_000), "rights may have changed"
    world.topics.put("u", 1)
    assert not is_due(9_999)
    assert is_due(10_000)
    world.match()
    assert not is_due(10_000)
    world.group.forget_matched("t")
    assert is_due(0), "it is not known what the expression matches"


def test_offsets_of_what_an_expression_matches_are_kept() -> None:
    world = World(t=1, u=1)
    world.join("A", regex="t")
    world.settle("A")
    assert committing.subscribed_of(world.group, ["t", "u"]) == {"t"}


# --- epochs (K2, K3) ------------------------------------------------------------------------------------------------


def two_members() -> World:
    world = World(t=4)
    for name in "AB":
        world.join(name)
    world.settle()
    assert {name: len(topics["t"]) for name, topics in world.owned().items()} == {"A": 2, "B": 2}
    assert world.group.state is GroupState.STABLE
    return world


def test_a_group_begins_at_epoch_1_and_its_first_subscription_is_the_second() -> None:
    world = World()
    world.join("A").topics = ()
    world.beat("A")
    assert (world.clients["A"].epoch, world.group.epoch, world.group.state) == (1, 1, GroupState.STABLE)
    world.join("B")
    world.beat("B")
    assert (world.clients["B"].epoch, world.group.epoch) == (2, 2)


def test_epochs_that_are_not_the_members_are_fenced() -> None:
    world = two_members()
    client = world.clients["A"]
    epoch = client.epoch
    for wrong in (epoch + 1, epoch - 1, epoch - 2):
        client.epoch = wrong
        client.owned = {}
        sent = world.beat("A") if wrong != epoch - 1 else None
        assert sent in (ErrorCode.FENCED_MEMBER_EPOCH, None), wrong


def test_the_epoch_before_is_right_where_the_answer_was_lost_and_no_more_is_owned() -> None:
    world = World(t=4)
    world.join("A")
    world.beat("A")
    world.topics.put("t", 6)
    world.beat("A", is_lost=True)
    before, now = world.clients["A"].epoch, world.member("A").epoch
    assert now == before + 1
    world.clients["A"].owned = {world.topics.by_name["t"].topic_id: {99}}
    assert world.beat("A", follows=False) is ErrorCode.FENCED_MEMBER_EPOCH
    world.clients["A"].epoch, world.clients["A"].owned = before, {}
    assert world.beat("A") is ErrorCode.NONE
    world.clients["A"].follow()
    assert world.owned()["A"] == {"t": [0, 1, 2, 3, 4, 5]}


def test_a_short_heartbeat_hears_of_its_assignment_only_when_it_changes() -> None:
    world = World()
    world.join("A")
    world.beat("A")
    world.beat("A")
    assert world.clients["A"].assigned is None
    world.clients["A"].says_all = True
    world.beat("A")
    assert world.clients["A"].assigned is not None


# --- a partition is never with two members (K4) ---------------------------------------------------------------------


def test_a_partition_stays_with_its_member_until_that_has_given_it_up() -> None:
    world = World(t=4)
    world.join("A")
    world.settle()
    world.join("B")
    world.beat("B")
    assert world.member("B").state is MemberState.UNRELEASED_PARTITIONS
    for _ in range(3):  # a member that does not give up
        world.beat("A", follows=False)
        world.beat("B")
        assert world.member("A").state is MemberState.UNREVOKED_PARTITIONS
        assert not any(world.member("B").assigned.values())
    world.clients["A"].owned = {topic: set(sorted(indexes)[:2]) for topic, indexes in world.clients["A"].owned.items()}
    world.beat("A", follows=False)
    assert world.member("A").state is MemberState.STABLE
    world.settle("B", rounds=2)
    assert len(world.owned()["B"]["t"]) == 2


def test_a_member_that_does_not_give_up_in_time_is_fenced() -> None:
    world = World(t=4)
    world.join("A")
    world.settle()
    world.join("B")
    world.beat("B")
    for _ in range(3):
        world.beat("A", follows=False)
        world.advance(30_000)
        world.beat("B")
    assert list(world.group.members) == ["B0"]
    world.settle("B", rounds=2)
    assert world.owned() == {"A": {}, "B": {"t": [0, 1, 2, 3]}}


def test_a_subscription_that_ends_takes_its_topic_at_once() -> None:
    world = World(ConsumerGroupSettings(assignment_interval_ms=60_000), t=2, u=2)
    world.join("A", "t", "u")
    world.settle(rounds=2)
    world.clients["A"].topics, world.clients["A"].says_all = ("t",), True
    world.beat("A", follows=False)
    assert world.member("A").state is MemberState.UNREVOKED_PARTITIONS
    world.settle(rounds=2)
    assert world.owned() == {"A": {"t": [0, 1]}}


def test_deleted_topics_are_taken_and_new_partitions_come() -> None:
    world = two_members()
    world.topics.put("t", 6)
    world.settle()
    assert [len(topics["t"]) for topics in world.owned().values()] == [3, 3]
    world.topics.delete("t")
    world.settle()
    assert world.group.owners == {}
    assert world.group.state is GroupState.STABLE


# --- static members (K5) --------------------------------------------------------------------------------------------


def test_a_static_member_that_is_away_keeps_its_partitions_for_its_successor() -> None:
    world = World(t=4)
    world.join("S", instance_id="s")
    world.join("B")
    world.settle()
    before, epoch = world.owned()["S"], world.group.epoch
    assert world.leave("S", -2) is ErrorCode.NONE
    world.settle("B", rounds=2)
    assert len(world.owned()["B"]["t"]) == 2
    world.join("S", instance_id="s")
    world.settle("S", rounds=2)
    assert (world.owned()["S"], world.group.epoch) == (before, epoch)
    assert "S0" not in world.group.members


def test_a_static_member_that_is_there_is_not_replaced() -> None:
    world = World()
    world.join("S", instance_id="s")
    world.beat("S")
    former = world.clients["S"]
    world.join("S", instance_id="s")
    assert world.beat("S") is ErrorCode.UNRELEASED_INSTANCE_ID
    world.clients["S"] = replace(former, member_id="other")
    assert world.beat("S") is ErrorCode.FENCED_INSTANCE_ID
    world.clients["S"] = replace(former, instance_id="unknown", epoch=2)
    assert world.beat("S") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_successor_with_another_subscription_is_assigned_anew() -> None:
    world = World(t=2, u=2)
    world.join("S", "t", instance_id="s")
    world.settle(rounds=2)
    world.leave("S", -2)
    world.join("S", "u", instance_id="s")
    world.settle(rounds=3)
    assert world.owned() == {"S": {"u": [0, 1]}}


# --- when a target is computed (K8) ---------------------------------------------------------------------------------


def test_members_that_join_together_cost_few_computations() -> None:
    world = World(ConsumerGroupSettings(assignment_interval_ms=1_000), t=100)
    names = [f"m{number}" for number in range(50)]
    for name in names:
        world.join(name)
        world.beat(name)
    assert world.computed == 1
    world.advance(1_000)
    world.settle(rounds=4)
    assert (world.computed, world.group.state) == (2, GroupState.STABLE)
    assert {len(topics["t"]) for topics in world.owned().values()} == {2}


def gathered(members: int, *, apart_ms: int = 0, settings: ConsumerGroupSettings | None = None) -> World:
    """A group whose members come together."""
    world = World(settings or ConsumerGroupSettings(), t=100)
    world.is_joint = True
    for number in range(members):
        world.join(f"m{number}")
        world.beat(f"m{number}")
        world.advance(apart_ms)
    return world


def test_the_first_target_of_members_that_come_together_waits_until_none_joins() -> None:
    world = gathered(50, apart_ms=20)
    assert (world.computed, world.group.state) == (0, GroupState.ASSIGNING)
    assert {world.member(name).epoch for name in world.clients} == {1}, "0 would mean that they are to join"
    world.advance(229)
    world.beat("m0")
    assert (world.computed, world.interval_ms) == (0, 500), "the last one has joined less than half of that ago"
    world.advance(1)
    world.settle(rounds=2)
    assert (world.computed, world.group.state) == (1, GroupState.STABLE)
    assert {len(topics["t"]) for topics in world.owned().values()} == {2}
    assert not any(member.revoking for member in world.group.members.values())


def test_members_that_come_without_an_end_are_waited_for_three_intervals() -> None:
    world = gathered(29, apart_ms=100)
    assert world.computed == 0
    world.advance(100)
    world.join("late")
    world.beat("late")
    assert world.computed == 1


@pytest.mark.parametrize(
    "settings", [ConsumerGroupSettings(assignment_interval_ms=0), ConsumerGroupSettings(rebalance_interval_ms=0)]
)
def test_no_member_is_waited_for_where_targets_or_heartbeats_do_not_wait(settings: ConsumerGroupSettings) -> None:
    world = gathered(1, settings=settings)
    assert (world.computed, world.group.state) == (1, GroupState.STABLE)


def test_members_that_come_together_to_a_group_that_has_members_do_not_wait() -> None:
    world = World(ConsumerGroupSettings(), t=4)
    world.join("A")
    world.settle("A")
    world.advance(1_000)
    world.is_joint = True
    world.join("B")
    world.beat("B")
    assert world.computed == 2


def test_members_gather_again_in_a_group_that_all_have_left() -> None:
    world = gathered(2)
    world.advance(500)
    world.settle()
    for name in list(world.clients):
        world.leave(name)
    world.advance(60_000)
    for name in list(world.clients):
        world.join(name)
        world.beat(name)
    assert (world.computed, world.group.state) == (1, GroupState.ASSIGNING)
    world.advance(250)
    world.settle()
    assert (world.computed, world.group.state) == (2, GroupState.STABLE)


def test_a_clock_that_is_set_back_while_members_gather_ends_that() -> None:
    world = gathered(2)
    world.now_ms -= 3_600_000
    world.settle()
    assert (world.computed, world.group.state) == (1, GroupState.STABLE)


def test_a_clock_that_is_set_back_holds_up_no_assignment() -> None:
    world = World(ConsumerGroupSettings(assignment_interval_ms=1_000), t=4)
    world.join("A")
    world.settle(rounds=2)
    world.now_ms -= 3_600_000
    world.join("B")
    world.settle(rounds=4)
    assert {len(topics["t"]) for topics in world.owned().values()} == {2}


def test_a_full_group_takes_no_more_members_except_a_successor() -> None:
    world = World(ConsumerGroupSettings(assignment_interval_ms=0, members_max=1))
    world.join("S", instance_id="s")
    world.beat("S")
    world.join("B")
    assert world.beat("B") is ErrorCode.GROUP_MAX_SIZE_REACHED
    world.leave("S", -2)
    world.join("S", instance_id="s")
    assert world.beat("S") is ErrorCode.NONE


# --- offsets (K6, K7) -----------------------------------------------------------------------------------------------


def code_of(call: Any, *arguments: Any) -> ErrorCode:
    try:
        call(*arguments)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


def test_commits_are_judged_by_epoch_and_partitions() -> None:
    world = World(t=2)
    world.join("A")
    world.beat("A")
    first = world.clients["A"].epoch
    world.topics.put("t", 4)
    world.settle()
    group, topic_id, now = world.group, world.topics.by_name["t"].topic_id, world.member("A").epoch
    assert now == first + 1
    owned, others = [(topic_id, 0), (topic_id, 1)], [(topic_id, 2)]

    def commit(epoch: int, member_id: str = "A0", version: int = 9, places: Any = owned) -> ErrorCode:
        return code_of(committing.check_committer, group, epoch, member_id, version, places)

    assert commit(now, places=[(topic_id, 9)]) is ErrorCode.NONE
    assert commit(first) is ErrorCode.NONE
    assert commit(first, places=owned + others) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(now + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(now, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert commit(-1, "") is ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(committing.check_committer, ConsumerGroup("e"), -1, "", 9, owned) is ErrorCode.NONE


def test_transactional_commits_are_judged_by_epoch_and_partitions() -> None:
    world = World(t=2)
    world.join("A")
    world.beat("A")
    first = world.clients["A"].epoch
    world.topics.put("t", 4)
    world.settle()
    group, topic_id, now = world.group, world.topics.by_name["t"].topic_id, world.member("A").epoch
    owned = [(topic_id, 0), (topic_id, 1)]

    def commit(epoch: int, member_id: str = "A0", instance_id: str | None = None, places: Any = owned) -> ErrorCode:
        return code_of(committing.check_transactional_committer, group, epoch, member_id, instance_id, places)

    assert commit(now, places=[(topic_id, 9)]) is ErrorCode.NONE
    assert commit(first) is ErrorCode.NONE
    assert commit(first, places=[*owned, (topic_id, 2)]) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(now + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(-1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(-1, "") is ErrorCode.NONE
    assert commit(-1, "", "i") is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(now, "B") is ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(committing.check_transactional_committer, ConsumerGroup("e"), -1, "B", None, owned) is ErrorCode.NONE


def test_a_fetch_names_the_members_present_epoch_or_no_member() -> None:
    world = World()
    world.join("A")
    world.beat("A")
    group, now = world.group, world.member("A").epoch
    assert code_of(committing.check_fetcher, group, now, "A0") is ErrorCode.NONE
    assert code_of(committing.check_fetcher, group, now - 1, "A0") is ErrorCode.STALE_MEMBER_EPOCH
    assert code_of(committing.check_fetcher, group, now, "B") is ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(committing.check_fetcher, group, -1, None) is ErrorCode.NONE


# --- records of other releases --------------------------------------------------------------------------------------


def test_a_record_without_epochs_or_of_a_later_state_is_read() -> None:
    groups = dict[str, ConsumerGroup]()
    value = ConsumerGroupCurrentMemberAssignmentValue(7, 6, 99, [TopicPartitions(b"t" * 16, [0, 1])])
    replay(groups, ConsumerGroupCurrentMemberAssignmentKey("g", "m"), value)
    member = groups["g"].members["m"]
    assert (member.state, member.assigned) == (MemberState.UNKNOWN, {b"t" * 16: {0: 7, 1: 7}})


def test_a_member_is_written_with_apache_kafkas_number_of_its_state() -> None:
    """Apache Kafka 4.3's MemberState: its coordinator goes on with our records."""
    numbers = {state.name: state.value for state in MemberState}
    assert numbers == {"STABLE": 0, "UNREVOKED_PARTITIONS": 1, "UNRELEASED_PARTITIONS": 2, "UNKNOWN": 127}


def test_a_tombstone_of_what_was_never_there_says_nothing() -> None:
    world = two_members()
    before = replace(world.group, members=dict(world.group.members))
    strangers = {record.key.group_id for record in world.log if hasattr(record.key, "group_id")}
    for record in list(world.log):
        key = type(record.key)(*("x" for _ in record.key.SCHEMA))
        replay(world.groups, *KeyedRecord(key)[:2])
    assert (list(world.groups), world.group, strangers) == (["g"], before, {"g"})
