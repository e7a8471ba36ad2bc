"""The rules of share groups, in stories of a few heartbeats."""

from dataclasses import replace
from typing import Any

import pytest

from kavka_broker.core.consumer_group.heartbeat import AT_ONCE_STEPS_MAX, Surroundings
from kavka_broker.core.consumer_group.settings import SUBSCRIBED_TOPICS_MAX
from kavka_broker.core.share_group import heartbeat as rules
from kavka_broker.core.share_group.checks import ShareHeartbeat, check_heartbeat
from kavka_broker.core.share_group.records import group_tombstones, replay, states_record
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.core.share_group.state import GroupState, NamedPartitions, ShareGroup, StatePartitions
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from tests.unit.share_group.world import GROUP, World

JOIN = ShareHeartbeat("g", "a", 0, topics=("t",))
INTERVALS = ShareGroupSettings(assignment_interval_ms=1_000)

# --- what a heartbeat may say ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"member_id": ""}, "^INVALID_REQUEST$"),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"member_id": "x" * 37}, "^INVALID_REQUEST$"),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"topics": None}, "SubscribedTopicNames must be set in first request."),
        ({"topics": ()}, "SubscribedTopicNames must be set in first request."),
        ({"topics": ["t"] * (SUBSCRIBED_TOPICS_MAX + 1)}, "at most"),
        ({"epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_a_heartbeat_that_says_too_little_or_too_much_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BrokerError, match=words) as refused:
        check_heartbeat(replace(JOIN, **changes))
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("beat", [JOIN, replace(JOIN, epoch=3, topics=None), replace(JOIN, epoch=-1, topics=None)])
def test_a_heartbeat_that_joins_stays_or_leaves_is_fine(beat: ShareHeartbeat) -> None:
    check_heartbeat(beat)


# --- a partition is assigned when the share coordinator has its state ------------------------------------------------


def test_the_first_member_asks_for_the_state_of_its_partitions_and_then_gets_them() -> None:
    world = World(t=2, u=1)
    world.join("A", "t", "u")
    world.beat("A")
    assert world.clients["A"].epoch == 2
    assert world.assigned() == {"A": {}}
    assert [sum(map(len, asked.values())) for asked in world.asked] == [3]
    assert world.interval_ms == 500, "it waits for its partitions"
    world.beat("A")
    assert len(world.asked) == 1, "they are asked for once"
    world.answer()
    world.beat("A")
    assert world.assigned() == {"A": {"t": [0, 1], "u": [0]}}
    assert (world.clients["A"].epoch, world.group.epoch, world.group.assignment_epoch) == (3, 3, 3)
    assert world.interval_ms == 5_000


def test_what_could_not_be_initialized_is_asked_for_again() -> None:
    world = World(t=3)
    world.join("A")
    world.beat("A")
    world.answer(fails=lambda index: index == 1)
    world.beat("A")
    assert world.assigned() == {"A": {"t": [0, 2]}}
    assert [list(asked.values()) for asked in world.asked] == [[frozenset({1})]]
    world.answer()
    world.beat("A")
    assert world.assigned() == {"A": {"t": [0, 1, 2]}}


def test_what_was_never_answered_is_asked_for_again_after_a_while() -> None:
    world = World(t=1)
    world.join("A")
    world.beat("A")
    world.never_answer()
    for _ in range(5):
        world.advance(5_000)
        world.beat("A")
        assert not world.asked
    world.advance(5_000)
    world.beat("A")
    assert len(world.asked) == 1
    assert world.group.states is not None
    assert set(world.group.states.initializing) == {world.topics.by_name["t"].topic_id}


def test_a_topic_that_grows_is_initialized_and_assigned_without_a_new_member() -> None:
    world = World(t=1)
    world.join("A")
    world.settle()
    world.topics.grow("t", 3)
    world.settle()
    assert world.assigned() == {"A": {"t": [0, 1, 2]}}


def test_a_topic_that_is_made_again_is_another_one() -> None:
    world = World(t=1)
    world.join("A")
    world.settle()
    former = world.topics.by_name["t"].topic_id
    world.topics.delete("t")
    world.settle()
    assert world.assigned() == {"A": {}}
    assert world.group.states == StatePartitions()
    world.topics.put("t", 2)
    world.settle()
    assert world.assigned() == {"A": {"t": [0, 1]}}
    assert world.group.states is not None
    assert former not in world.group.states.initialized


# --- epochs and targets ---------------------------------------------------------------------------------------------


def test_partitions_are_shared_and_a_member_that_leaves_gives_its_own_to_the_others() -> None:
    world = World(t=2)
    for name in "ABC":
        world.join(name)
    world.settle()
    held = world.assigned()
    assert sorted(len(held[name]["t"]) for name in "ABC") == [1, 1, 2]
    assert world.leave("A") is ErrorCode.NONE
    world.settle("B", "C")
    assert sorted(world.assigned()[name]["t"] for name in "BC") == [[0], [1]]
    assert world.leave("A") is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_epoch_does_not_move_while_its_assignment_waits() -> None:
    """A member that heartbeats within the interval must not ask for one assignment more each time."""
    world = World(INTERVALS, t=2)
    world.join("A")
    world.settle("A")
    world.join("B")
    world.beat("B")
    world.answer()
    epoch, computed = world.group.epoch, world.computed
    assert world.group.assignment_epoch < epoch
    for _ in range(5):
        world.beat("A")
        world.beat("B")
    assert (world.group.epoch, world.computed) == (epoch, computed)
    assert world.interval_ms == 500
    world.advance(1_000)
    world.settle()
    assert world.computed == computed + 1
    assert world.group.epoch == epoch


def test_the_first_partitions_do_not_wait_for_the_interval_behind_an_assignment_of_none() -> None:
    world = World(INTERVALS, t=2)
    world.join("A")
    world.beat("A")
    world.answer()
    world.beat("A")
    assert world.assigned() == {"A": {"t": [0, 1]}}


def test_a_settled_group_writes_nothing() -> None:
    world = World(t=2, u=1)
    world.join("A", "t", "u")
    world.join("B", "u", "missing")
    world.settle()
    written = len(world.log)
    world.settle()
    world.clients["A"].says_all = True  # asks for everything again
    world.beat("A")
    assert len(world.log) == written
    assert rules.is_steady(world.group, ShareHeartbeat(GROUP, "A0", world.clients["A"].epoch, "A", "/127.0.0.1"), 2)


@pytest.mark.parametrize(
    ("behind", "code"),
    [(0, ErrorCode.NONE), (1, ErrorCode.NONE), (-1, ErrorCode.FENCED_MEMBER_EPOCH), (2, ErrorCode.FENCED_MEMBER_EPOCH)],
)
def test_an_epoch_is_right_or_one_behind(behind: int, code: ErrorCode) -> None:
    world = World(t=2)
    world.join("A")
    world.settle()
    world.join("B")
    world.settle()
    member = world.member("A")
    world.clients["A"].epoch = {0: member.epoch, 1: member.previous_epoch}.get(behind, member.epoch - behind)
    assert world.beat("A") is code


def test_a_member_that_joins_again_keeps_what_it_has() -> None:
    world = World(t=2)
    world.join("A")
    world.settle()
    epoch, written = world.clients["A"].epoch, len(world.log)
    world.clients["A"].forget()
    world.beat("A")
    assert (world.clients["A"].epoch, world.assigned()) == (epoch, {"A": {"t": [0, 1]}})
    assert len(world.log) == written


def test_a_member_is_not_known_or_the_group_is_not() -> None:
    world = World(t=1)
    world.join("A").epoch = 3
    assert world.beat("A") is ErrorCode.GROUP_ID_NOT_FOUND
    world.settle()
    world.join("B").epoch = 3
    assert world.beat("B") is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_are_no_more_than_the_group_may_have() -> None:
    world = World(ShareGroupSettings(assignment_interval_ms=0, members_max=1), t=1)
    world.join("A")
    world.settle()
    world.join("B")
    assert world.beat("B") is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.beat("A") is ErrorCode.NONE


def test_what_a_member_and_its_partitions_take_is_bounded() -> None:
    world = World(t=1_000)
    around = Surroundings(world.topics, world.topics.changes, world.now_ms, room_bytes=30_000)
    with pytest.raises(BrokerError) as refused:
        rules.heartbeat(world.group, JOIN, world.settings, around)
    assert refused.value.code is ErrorCode.GROUP_MAX_SIZE_REACHED
    rules.heartbeat(world.group, JOIN, world.settings, replace(around, room_bytes=70_000))


def test_a_silent_member_is_fenced() -> None:
    world = World(t=2)
    world.join("A")
    world.join("B")
    world.settle()
    world.advance(40_000)
    world.beat("B")
    world.advance(10_000)
    world.settle("B")
    assert world.assigned()["B"] == {"t": [0, 1]}
    assert world.beat("A") is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("members", "partitions", "more", "is_large"),
    [(2, 4, (), False), (2, AT_ONCE_STEPS_MAX, (), True), (2, 4, ("u",) * AT_ONCE_STEPS_MAX, True)],
)
def test_a_large_group_is_work_for_a_thread(
    members: int, partitions: int, more: tuple[str, ...], is_large: bool
) -> None:
    world = World(t=partitions)
    for name in "ABC"[:members]:
        world.join(name)
    world.settle()
    assert rules.is_large(world.group, world.topics, more) is is_large


# --- offsets --------------------------------------------------------------------------------------------------------


def test_offsets_are_altered_and_deleted_without_members_alone() -> None:
    world = World(t=2)
    world.join("A")
    world.settle()
    for refused in (world.alter("t", 0), world.delete_topic_offsets("t"), world.delete_group()):
        assert refused is ErrorCode.NON_EMPTY_GROUP
    world.leave("A")
    assert world.alter("t", 0) is ErrorCode.NONE
    world.answer()
    assert world.delete_topic_offsets("t") is ErrorCode.NONE
    assert world.group.states == StatePartitions()
    assert world.delete_group() is ErrorCode.NONE
    assert world.groups == {}
    assert world.delete_group() is ErrorCode.GROUP_ID_NOT_FOUND


def test_altered_offsets_take_the_room_that_is_there() -> None:
    world = World(t=2)
    assert world.alter("t", 0, 1, room_bytes=100) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert (world.groups, world.asked) == ({}, [])
    assert world.alter("t", 0, 1, room_bytes=10_000) is ErrorCode.NONE
    assert world.alter("t", 0, 1, room_bytes=-1) is ErrorCode.NONE, "it takes no more than before"


def test_a_group_begins_with_offsets_that_an_operator_sets() -> None:
    world = World(t=2)
    assert world.alter("t", 1) is ErrorCode.NONE
    assert world.group.state is GroupState.EMPTY
    world.answer()
    world.join("A")
    world.beat("A")
    assert [list(asked.values()) for asked in world.asked] == [[frozenset({0})]], "what is initialized is left alone"
    world.settle()
    assert world.assigned() == {"A": {"t": [0, 1]}}


def test_an_offset_that_could_not_be_altered_stays_what_it_was() -> None:
    world = World(t=1)
    world.join("A")
    world.settle()
    world.leave("A")
    world.alter("t", 0)
    world.answer(fails=lambda _: True)
    topic_id = world.topics.by_name["t"].topic_id
    assert world.group.states == StatePartitions(initialized={topic_id: NamedPartitions("t", frozenset({0}))})


def test_a_deletion_that_was_not_answered_is_asked_for_again_and_a_member_ends_it() -> None:
    world = World(t=2)
    world.join("A")
    world.settle()
    world.leave("A")
    topic_id = world.topics.by_name["t"].topic_id
    for _ in range(2):
        world.delete_group(is_answered=False)
        assert world.group.states == StatePartitions(deleting={topic_id: "t"})
    world.join("A")
    world.settle()
    assert world.group.states == StatePartitions(initialized={topic_id: NamedPartitions("t", frozenset({0, 1}))})


# --- records --------------------------------------------------------------------------------------------------------


def test_a_group_is_there_as_long_as_a_record_says_something_of_it() -> None:
    groups = dict[str, ShareGroup]()
    end = group_tombstones(ShareGroup(GROUP))
    states = states_record(GROUP, StatePartitions())
    for record in (states, *end):  # a group that was deleted, and begun again by an alteration: compaction may reorder
        if record.key != states.key or record.value is not None:
            replay(groups, record.key, record.value)
    assert groups.keys() == {GROUP}
    replay(groups, states.key, None)
    assert groups == {}
