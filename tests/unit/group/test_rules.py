"""Rules of groups that no scenario comes upon, or not at their bound."""

import pytest

from kavka_broker.core.group import membership
from kavka_broker.core.group.deletion import check_offset_deletion, delete_group
from kavka_broker.core.group.effects import Effects, Respond, Start, Stop, TimerKind, TimerName
from kavka_broker.core.group.image import CLASSIC, CONSUMER, STREAMS, GroupImage
from kavka_broker.core.group.join import Join, go_on
from kavka_broker.core.group.persistence import restore, restore_member
from kavka_broker.core.group.records import group_record, group_tombstone
from kavka_broker.core.group.settings import PENDING_MEMBERS_MAX, GroupSettings
from kavka_broker.core.group.state import ClassicGroup, GroupState, Member, Write
from kavka_broker.core.group.subscription import subscribed_topics
from kavka_broker.core.group.sync import finish_replacement, persisted
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.group.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kavka_broker.protocol.messages.group.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue, MemberMetadata
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue
from kavka_broker.protocol.messages.group.streams_group_metadata_key import StreamsGroupMetadataKey
from kavka_broker.protocol.messages.group.streams_group_metadata_value import StreamsGroupMetadataValue
from kavka_broker.protocol.messages.group.streams_group_topology_key import StreamsGroupTopologyKey
from kavka_broker.protocol.messages.group.streams_group_topology_value import StreamsGroupTopologyValue
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from tests.unit.group.world import World


def member(name: str, instance_id: str | None = None) -> Member:
    return Member(name, instance_id, name, "/127.0.0.1", 10_000, 60_000, (("range", b""),))


def test_a_group_takes_no_member_without_a_type_or_a_protocol() -> None:
    group = ClassicGroup("g")
    assert not group.supports("", (("range", b""),))
    assert not group.supports("consumer", ())
    assert group.supports("consumer", (("range", b""),))


def test_a_static_member_that_has_no_assignment_yet_still_has_none_under_its_new_id() -> None:
    group = ClassicGroup("g")
    group.add(member("a", "i"))
    group.add(member("b"))
    group.unsynced = {"a": None, "b": None}
    group.replace_static(group.members["a"], "c")
    assert (list(group.members), group.leader_id, group.instances) == (["c", "b"], "c", {"i": "c"})
    assert set(group.unsynced) == {"b", "c"}


def test_topics_are_told_only_of_consumers_that_have_agreed_on_a_protocol() -> None:
    assert subscribed_topics(ClassicGroup("g", protocol_type="consumer")) is None
    assert subscribed_topics(ClassicGroup("g", protocol_type="connect", protocol_name="range")) is None
    assert subscribed_topics(ClassicGroup("g", protocol_type="consumer", protocol_name="range")) == frozenset()


def test_only_a_negative_generation_commits_without_a_member() -> None:
    world = World()
    assert world.commit("", -1) is ErrorCode.NONE
    assert world.commit("", 0) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_wait_for_assignments_that_is_over_is_not_ended_again() -> None:
    world = World()
    world.join("A")
    world.advance(10_000)
    world.sync("A", {"A": "0"})
    assert world.group.state is GroupState.STABLE
    effects = Effects()
    membership.expired(world.group, TimerName(TimerKind.SYNC), world.settings, world.now_ms, effects)
    assert (effects, world.group.state) == ([], GroupState.STABLE)


def test_members_that_wait_for_less_than_the_initial_delay_do_not_prolong_it() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3_000))
    world.join("A", rebalance="1s")
    assert world.group.initial_delay_left_ms == 0
    world.join("B", rebalance="1s")
    world.advance(3_000)
    assert world.group.state is GroupState.COMPLETING_REBALANCE


def test_ids_that_were_given_out_are_bounded_the_oldest_goes() -> None:
    world = World()
    for number in range(PENDING_MEMBERS_MAX + 1):
        world.join(f"m{number}", v="4")
    assert len(world.group.pending) == PENDING_MEMBERS_MAX
    assert len(world.timers) == PENDING_MEMBERS_MAX
    assert all(timer.member_id in world.group.pending for timer in world.timers)


def test_an_id_that_finds_no_room_is_not_waited_for() -> None:
    world = World(GroupSettings(members_max=1))
    world.join("A", v="4")
    world.join("B", v="4")
    pending = list(world.group.pending)
    world.clients["A"].member_id, world.clients["B"].member_id = pending
    world.join("A", v="4")
    world.join("B", v="4")
    assert not world.group.pending


def test_the_time_of_a_state_is_when_it_began() -> None:
    group = ClassicGroup("g")
    group.move_to(GroupState.PREPARING_REBALANCE, 77)
    assert group.state_since_ms == 77


def test_a_tombstone_ends_a_group_while_the_log_is_read() -> None:
    image = GroupImage()
    record = group_record("g", GroupMetadataValue(protocol_type="consumer", generation=3))
    image.replay(record.key, record.value)
    assert image.groups["g"].generation == 3
    image.replay(group_tombstone("g").key, None)
    assert not image.groups


def test_a_member_that_is_dropped_has_no_session() -> None:
    world = World()
    world.join("A")
    world.advance(10_000)
    effects = Effects()
    departure = membership.Departure(world.clients["A"].member_id)
    membership.leave(world.group, departure, world.settings, world.now_ms, effects)
    assert Stop(TimerName(TimerKind.SESSION, world.clients["A"].member_id)) in effects


def test_a_new_id_that_is_not_written_while_a_generation_is_makes_another_generation() -> None:
    """The assignment that becomes stable names the new id, and the member has its former one again."""
    world = World(GroupSettings(initial_rebalance_delay_ms=0))
    world.join("A", rebalance="1s")
    world.join("S", rebalance="1s", instance="s")
    world.advance(0)
    world.join("A")
    world.sync("A", {"A": "0", "S": "1"})
    world.sync("S", {})
    assert world.group.state is GroupState.STABLE
    world.set_disk("holds")
    world.join("S", fresh="")
    (renewed,) = world.held
    world.join("B", rebalance="1s")
    world.join("A")
    world.advance(1_000)
    world.sync("A", {"A": "0", "B": "2"})
    world.held.remove(renewed)
    effects = Effects()
    persisted(world.group, renewed.ticket, ErrorCode.COORDINATOR_NOT_AVAILABLE, world.settings, world.now_ms, effects)
    world.run(effects)
    world.set_disk("works")
    assert world.group.state.name == "PREPARING_REBALANCE"
    assert not any(member.assignment for member in world.group.members.values())


def test_a_member_of_an_old_record_waits_for_its_session() -> None:
    for told, waits_ms in ((-1, 7_000), (0, 0), (9_000, 9_000)):
        value = MemberMetadata(member_id="a", rebalance_timeout=told, session_timeout=7_000)
        assert restore_member(value, "range").rebalance_timeout_ms == waits_ms


def test_a_group_without_members_keeps_no_offsets_for_a_subscription() -> None:
    assert check_offset_deletion(ClassicGroup("g"), ["t"]) == set()


def test_a_sync_that_waits_is_a_sign_of_life() -> None:
    world = World()
    world.join("A")
    world.join("B")
    world.advance(10_000)
    follower = next(name for name in "AB" if world.clients[name].member_id != world.group.leader_id)
    session = TimerName(TimerKind.SESSION, world.clients[follower].member_id)
    assert session in world.timers
    world.sync(follower, {})
    assert session not in world.timers


def test_the_first_member_leads() -> None:
    group = ClassicGroup("g")
    group.leader_id = "somebody before"
    group.add(member("a"))
    group.add(member("b"))
    assert group.leader_id == "a"


@pytest.mark.parametrize("can_skip", [True, False])
def test_a_static_leader_that_comes_back_assigns_only_where_its_client_can_skip_that(*, can_skip: bool) -> None:
    group = ClassicGroup("g", protocol_type="consumer", protocol_name="range", generation=1)
    group.add(member("new", "i"))
    group.move_to(GroupState.PREPARING_REBALANCE, 0)
    group.move_to(GroupState.COMPLETING_REBALANCE, 0)
    group.move_to(GroupState.STABLE, 0)
    command = Join(
        "token", "new", "i", "c", "/h", 10_000, 60_000, "consumer", (("range", b""),), "new", False, can_skip
    )
    answer = go_on(group, group.members["new"], command, "old")
    assert (answer.leader, answer.skip_assignment) == (("new", True) if can_skip else ("old", False))
    if not can_skip:
        assert go_on(group, group.members["new"], command, None).leader == ""


def test_a_member_that_has_its_former_id_again_has_a_session() -> None:
    group, effects = ClassicGroup("g"), Effects()
    group.add(member("new", "i"))
    answer = Respond("token", JoinGroupResponse())
    write = Write(answer=answer, replaced=("new", "old"))
    finish_replacement(group, write, answer, ErrorCode.COORDINATOR_NOT_AVAILABLE, effects)
    assert list(group.members) == ["old"]
    assert Respond("token", JoinGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)) in effects
    assert [effect.timer for effect in effects if isinstance(effect, Start)] == [TimerName(TimerKind.SESSION, "old")]


def test_the_leader_of_a_record_leads_and_otherwise_the_first_member() -> None:
    members = [MemberMetadata(member_id=name) for name in "ab"]
    for told, leads in (("b", "b"), ("a", "a"), ("gone", "a")):
        assert restore("g", GroupMetadataValue(leader=told, members=members)).leader_id == leads
    assert restore("g", GroupMetadataValue(leader="gone")).leader_id is None


def test_a_group_that_has_lost_its_records_of_another_kind_is_classic_by_its_offsets() -> None:
    image = GroupImage()
    image.replay(OffsetCommitKey("g", "t", 0), OffsetCommitValue(offset=7))
    image.replay(StreamsGroupMetadataKey("g"), StreamsGroupMetadataValue(2))
    image.replay(StreamsGroupTopologyKey("g"), StreamsGroupTopologyValue())
    list(image.finish_loading())
    assert not image.groups
    assert [image.type_of(group) for group in image.streams_groups.values()] == [STREAMS]
    image.replay(StreamsGroupMetadataKey("g"), None)
    image.replay(StreamsGroupTopologyKey("g"), None)
    list(image.finish_loading())
    found = image.find("g")
    assert found is not None
    assert image.type_of(found) == CLASSIC


@pytest.mark.parametrize("is_first", [True, False])
def test_offsets_before_or_behind_the_record_of_a_consumer_group_are_its_own(is_first: bool) -> None:
    image = GroupImage()
    records = [
        (OffsetCommitKey("g", "t", 0), OffsetCommitValue(offset=7)),
        (ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(3)),
    ]
    for key, value in records if is_first else records[::-1]:
        image.replay(key, value)
    list(image.finish_loading())
    assert (image.groups, [*image.consumer_groups], image.offsets("g")["t"][0].offset) == ({}, ["g"], 7)
    assert image.type_of(image.consumer_groups["g"]) == CONSUMER
    image.replay(ConsumerGroupMetadataKey("g"), None)
    list(image.finish_loading())
    assert ([*image.groups], image.consumer_groups) == (["g"], {})


def test_a_group_that_is_gone_cannot_be_deleted() -> None:
    group = ClassicGroup("g")
    assert [record.value for record in delete_group(group, {})] == [None]
    group.move_to(GroupState.DEAD, 0)
    with pytest.raises(BrokerError) as refused:
        delete_group(group, {})
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_whose_group_has_no_record_make_a_group() -> None:
    image = GroupImage()
    image.replay(OffsetCommitKey("g", "t", 0), OffsetCommitValue(7))
    image.replay(group_tombstone("g").key, None)
    assert not image.groups
    list(image.finish_loading())
    assert (list(image.groups), image.groups["g"].state) == (["g"], GroupState.EMPTY)
