"""Groups that change their protocol while they have members (KIP-848, K10), in stories of a few requests."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kavka_broker.core.consumer_group import classic_members, committing
from kavka_broker.core.consumer_group.checks import Heartbeat
from kavka_broker.core.consumer_group.classic_snapshot import snapshot_of
from kavka_broker.core.consumer_group.downgrade import may_downgrade
from kavka_broker.core.consumer_group.heartbeat import Surroundings
from kavka_broker.core.consumer_group.records import replay
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings, MigrationPolicy
from kavka_broker.core.consumer_group.state import ConsumerGroup, MemberState
from kavka_broker.core.consumer_group.upgrade import check_upgrade, upgrade, upgraded
from kavka_broker.core.group.embedded_protocol import read_assignment
from kavka_broker.core.group.state import ClassicGroup, GroupState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.group.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from tests.unit.consumer_group.classic import (
    assignment,
    beat,
    classic_group,
    held,
    join,
    subscription,
    turn,
)
from tests.unit.consumer_group.world import GROUP, World


def refused(call: Callable[..., Any], *arguments: Any, **fields: Any) -> ErrorCode:
    with pytest.raises(BrokerError) as error:
        call(*arguments, **fields)
    return error.value.code


def given(group: ClassicGroup) -> dict[str, list[int]]:
    """What each member of a classic group was assigned of the only topic."""
    return {
        member.member_id: [
            index for place in read_assignment(member.assignment).assigned_partitions for index in place.partitions
        ]
        for member in group.members.values()
    }


# --- from classic to consumer ---------------------------------------------------------------------------------------


def test_members_of_an_upgraded_group_keep_what_they_have() -> None:
    world = World(t=4)
    turn(world, classic_group(3, A=assignment(0, 1), B=assignment(2, 3)))
    group = world.group
    assert held(group) == {"A": [0, 1], "B": [2, 3]}
    assert (group.epoch, group.assignment_epoch) == (3, 3)
    assert {member.epoch for member in group.members.values()} == {3}
    assert {member.state for member in group.members.values()} == {MemberState.STABLE}
    assert group.targets == {
        name: {world.topics.by_name["t"].topic_id: frozenset(has)} for name, has in held(group).items()
    }


def test_the_member_that_upgrades_a_group_waits_for_what_classic_members_give_up() -> None:
    world = World(t=6)
    turn(world, classic_group(3, A=assignment(0, 1, 2), B=assignment(3, 4, 5)))
    topic_id = world.topics.by_name["t"].topic_id
    assert beat(world, "C").assigned == {}
    assert world.group.epoch == 4
    for name in "AB":
        member = classic_members.classic_member_of(world.group, name, None, 3)
        assert classic_members.has_to_rejoin(world.group, member, world.settings, world.now_ms)
    assert join(world, "A", owned=[0, 1, 2]).epoch == 3, "it has something to give up"
    assert held(world.group)["A"] == [0, 1, 2], "and has it still"
    kept = [*world.group.members["A"].assigned[topic_id]]
    assert join(world, "A", owned=kept).epoch == 4
    assert held(world.group) == {"A": kept, "B": [3, 4, 5], "C": []}
    assert beat(world, "C", 4).assigned == {topic_id: {index: 4 for index in range(3) if index not in kept}}
    assert join(world, "B", owned=[]).epoch == 4, "an eager member has given everything up before it joins"
    assert beat(world, "C", 4).assigned is not None
    assert [len(has) for has in held(world.group).values()] == [2, 2, 2]


def test_partitions_that_a_topic_got_after_the_last_generation_belong_to_somebody_after_the_upgrade() -> None:
    """The consumer comes in the place of a static member, with the same topics: nothing else moves the epoch."""
    group = classic_group(3, A=assignment(0, 1))
    group.members["A"].instance_id = "i"
    world = World(t=4)
    change = upgrade(
        ConsumerGroup(GROUP),
        snapshot_of(group),
        Heartbeat(GROUP, "C", 0, instance_id="i", rebalance_timeout_ms=1_000, topics=("t",), owned={}),
        world.settings,
        Surroundings(world.topics, world.topics.changes, world.now_ms),
    )
    world.apply(change)
    assert world.group.epoch == 4
    assert held(world.group)["C"] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        ({}, ConsumerGroupSettings(migration=MigrationPolicy.DOWNGRADE)),
        ({}, ConsumerGroupSettings(migration=MigrationPolicy.DISABLED)),
        ({"protocol_type": "connect"}, ConsumerGroupSettings()),
        ({}, ConsumerGroupSettings(members_max=1)),
    ],
    ids=["only down", "disabled", "of Connect", "too large"],
)
def test_a_group_that_must_not_be_upgraded_is_not_found(
    change: dict[str, Any], settings: ConsumerGroupSettings
) -> None:
    group = replace(classic_group(3, A=assignment(0), B=assignment(1)), **change)
    assert refused(check_upgrade, group, settings) is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL])
def test_a_group_of_consumers_may_be_upgraded(policy: MigrationPolicy) -> None:
    check_upgrade(classic_group(3, A=assignment(0)), ConsumerGroupSettings(members_max=1, migration=policy))


@pytest.mark.parametrize(
    ("assigned", "words"),
    [(b"\0", "malformed"), (assignment(0)[:-6], "malformed"), (assignment(0, user_data=b"x"), "custom assignor")],
)
def test_a_group_whose_assignments_cannot_be_read_is_not_upgraded(assigned: bytes, words: str) -> None:
    with pytest.raises(BrokerError, match=words) as error:
        upgraded(snapshot_of(classic_group(3, A=assigned)), World().topics)
    assert error.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_whose_subscriptions_cannot_be_read_is_not_upgraded() -> None:
    group = classic_group(3, A=assignment(0))
    group.change_protocols(group.members["A"], (("range", b"\0\3\0\0"),))
    assert refused(upgraded, snapshot_of(group), World().topics) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_whose_assignment_was_taken_back_has_what_it_says_that_it_owns() -> None:
    """A cooperative member goes on with its partitions while the group rebalances twice. Apache Kafka takes it for one
    without any, and gives them to others.
    """
    world = World(t=4)
    group = classic_group(3, A=b"", B=assignment(2))
    group.change_protocols(group.members["A"], (("range", subscription(owned=[1, 2])),))
    turn(world, group)
    assert held(world.group) == {"A": [1], "B": [2]}


def test_a_member_has_what_it_may_have_yet_to_give_up_when_its_group_is_upgraded() -> None:
    """A cooperative member was assigned less than it owned, and has not joined again since."""
    world = World(t=4)
    group = classic_group(3, A=assignment(0), B=assignment(2))
    group.change_protocols(group.members["A"], (("range", subscription(owned=[0, 1, 2])),))
    turn(world, group)
    assert held(world.group) == {"A": [0, 1], "B": [2]}


def test_the_record_of_a_classic_member_has_what_it_speaks() -> None:
    records = turn(World(t=1), classic_group(3, A=assignment(0)))
    value = records[0].value
    assert isinstance(value, ConsumerGroupMemberMetadataValue)
    side = value.classic_member_metadata
    assert side is not None
    assert side.session_timeout_ms == 10_000
    assert [(protocol.name, protocol.metadata) for protocol in side.supported_protocols] == [("range", subscription())]


def test_an_upgraded_group_is_the_same_after_a_replay_in_any_order() -> None:
    world = World(t=4)
    records = turn(world, classic_group(3, A=assignment(0, 1), B=assignment(2, 3)))
    groups = dict[str, ConsumerGroup]()
    for record in reversed(records):
        replay(groups, record.key, record.value)
    assert groups == world.groups


# --- members of the classic protocol in a consumer group ------------------------------------------------------------


def mixed(t: int = 4, tt: int = 0) -> World:
    """A group in which C speaks the new protocol, and A the classic one; all is settled."""
    world = World(t=t, tt=tt) if tt else World(t=t)
    beat(world, "C")
    join(world, "A")
    for _ in range(2):
        assigned = {topic_id: [*indexes] for topic_id, indexes in world.group.members["C"].assigned.items()}
        beat(world, "C", world.group.members["C"].epoch, owned=assigned)
    join(world, "A")
    return world


def test_a_classic_member_gets_its_share() -> None:
    world = mixed(t=4)
    assert {name: len(has) for name, has in held(world.group).items()} == {"C": 2, "A": 2}
    member = world.group.members["A"]
    assert not classic_members.has_to_rejoin(world.group, member, world.settings, world.now_ms)
    classic_members.check_sync(world.group, member, "consumer", "range")


@pytest.mark.parametrize(
    ("fields", "settings", "code"),
    [
        ({"protocol_type": "connect"}, {}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, {}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("roundrobin", subscription()),)}, {}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({}, {"migration": MigrationPolicy.DISABLED}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({}, {"members_max": 2}, ErrorCode.GROUP_MAX_SIZE_REACHED),
        ({"protocols": (("range", b"\0"),)}, {}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"protocols": (("range", subscription(["t"] * 10_001)),)}, {}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "X", "instance_id": "i"}, {}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_join_that_the_group_cannot_take_is_refused(
    fields: dict[str, Any], settings: dict[str, Any], code: ErrorCode
) -> None:
    world = mixed(t=4)
    world.settings = replace(world.settings, **settings)
    before = world.group.copy()
    said = {"member_id": "", **fields}
    assert refused(join, world, **said) is code
    assert world.group == before


@pytest.mark.parametrize("policy", [policy for policy in MigrationPolicy if policy is not MigrationPolicy.DISABLED])
def test_every_policy_but_disabled_lets_classic_members_join(policy: MigrationPolicy) -> None:
    world = World(t=4)
    world.settings = replace(world.settings, migration=policy)
    beat(world, "C")
    join(world, "A")
    assert world.group.classic_count == 1


@pytest.mark.parametrize(
    ("member_id", "instance_id", "generation", "code"),
    [
        ("X", None, 0, ErrorCode.UNKNOWN_MEMBER_ID),
        ("C", None, 0, ErrorCode.UNKNOWN_MEMBER_ID),
        ("A", None, 1, ErrorCode.ILLEGAL_GENERATION),
        ("A", "i", 0, ErrorCode.UNKNOWN_MEMBER_ID),
        ("X", "s", 0, ErrorCode.FENCED_INSTANCE_ID),
    ],
)
def test_a_sync_or_heartbeat_of_another_is_refused(
    member_id: str, instance_id: str | None, generation: int, code: ErrorCode
) -> None:
    world = mixed(t=4)
    join(world, "", instance_id="s", new_member_id="S")
    group = world.group
    assert refused(classic_members.classic_member_of, group, member_id, instance_id, generation) is code


@pytest.mark.parametrize(("kind", "name"), [("connect", "range"), ("consumer", "sticky"), (None, "sticky")])
def test_a_sync_of_another_protocol_is_refused(kind: str | None, name: str) -> None:
    world = mixed(t=4)
    member = world.group.members["A"]
    assert refused(classic_members.check_sync, world.group, member, kind, name) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_sync_in_an_epoch_that_is_over_asks_for_another_join() -> None:
    world = mixed(t=4)
    beat(world, "D")
    member = world.group.members["A"]
    assert refused(classic_members.check_sync, world.group, member, None, None) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_gives_something_up_is_told_what_it_keeps() -> None:
    world = mixed(t=6)
    owned = held(world.group)["A"]
    beat(world, "D")
    join(world, "A", owned=owned)
    member = world.group.members["A"]
    assert member.state is MemberState.UNREVOKED_PARTITIONS
    classic_members.check_sync(world.group, member, None, None)
    assert classic_members.has_to_rejoin(world.group, member, world.settings, world.now_ms)


def test_a_member_that_waits_for_another_joins_again_when_that_has_given_up() -> None:
    world = World(t=4)
    beat(world, "C")
    join(world, "A")
    member = world.group.members["A"]
    assert member.state is MemberState.UNRELEASED_PARTITIONS
    assert not classic_members.has_to_rejoin(world.group, member, world.settings, world.now_ms)
    beat(world, "C", world.group.members["C"].epoch, owned={})
    beat(world, "C", world.group.members["C"].epoch, owned={})
    assert classic_members.has_to_rejoin(world.group, member, world.settings, world.now_ms)


def test_classic_members_alone_join_again_when_one_has_left() -> None:
    """Where the policy keeps the group from becoming a classic one, no other heartbeat computes the next target."""
    world = World(ConsumerGroupSettings(assignment_interval_ms=1_000, migration=MigrationPolicy.UPGRADE), t=4)
    turn(world, classic_group(3, A=assignment(0, 1), B=assignment(2, 3)))
    join(world, "A", owned=[0, 1])
    world.advance(world.settings.assignment_interval_ms)
    world.fence("B")
    assert world.classic is None
    member = world.group.members["A"]
    assert classic_members.has_to_rejoin(world.group, member, world.settings, world.now_ms)
    join(world, "A", owned=[0, 1])
    assert held(world.group) == {"A": [0, 1, 2, 3]}


@pytest.mark.parametrize("waits", [False, True], ids=["has its target", "waits for another"])
def test_a_classic_member_joins_again_though_a_member_of_the_new_protocol_hangs(waits: bool) -> None:
    world = World(ConsumerGroupSettings(assignment_interval_ms=1_000), t=4)
    beat(world, "C")
    join(world, "B")
    world.now_ms += 1_000
    join(world, "A")
    if not waits:
        for _ in range(3):
            for name in ("C", "B", "A"):
                member = world.group.members[name]
                indexes = [index for indexes in world.group.target_of(name).values() for index in indexes]
                if member.classic is None:
                    beat(world, name, member.epoch, owned={b"t" * 16: indexes})
                else:
                    join(world, name, owned=indexes)
    member = world.group.members["A"]
    assert (member.state is MemberState.UNRELEASED_PARTITIONS) == waits
    world.fence("B")
    assert world.group.epoch > world.group.assignment_epoch
    assert not classic_members.has_to_rejoin(world.group, member, world.settings, world.now_ms), "within the interval"
    assert classic_members.has_to_rejoin(world.group, member, world.settings, world.now_ms + 1_000)


def test_a_static_member_changes_its_protocol_without_leaving() -> None:
    world = mixed(t=4)
    join(world, "", instance_id="s", new_member_id="S1")
    beat(world, "S2", instance_id="s")
    assert world.group.members["S2"].classic is None
    assert "S1" not in world.group.members
    assert refused(beat, world, "S3", instance_id="s") is ErrorCode.UNRELEASED_INSTANCE_ID
    join(world, "", instance_id="s", new_member_id="S4")
    assert world.group.members["S4"].classic is not None
    assert join(world, "S4", instance_id="s").member_id == "S4", "it joins again"
    assert refused(join, world, "S1", instance_id="s") is ErrorCode.FENCED_INSTANCE_ID


def test_an_expression_of_a_static_member_that_comes_by_the_classic_protocol_is_forgotten() -> None:
    """KAFKA-19720: the target is computed again."""
    world = mixed(t=4, tt=1)
    world.join("S", regex="tt", instance_id="s")
    world.beat("S")
    epoch = world.group.epoch
    join(world, "", instance_id="s")
    assert world.group.epoch == epoch + 1
    assert not world.group.expressed
    assert not world.group.matched


def test_commits_of_classic_members_are_judged_by_generation_and_partitions() -> None:
    world = mixed(t=4)
    owned = held(world.group)["A"]
    old = world.group.members["A"].epoch
    beat(world, "D")
    join(world, "A", owned=owned)
    join(world, "A", owned=[index for index in owned if index in held(world.group)["A"]][:1])
    group, topic_id = world.group, world.topics.by_name["t"].topic_id
    now, (kept, *_) = group.members["A"].epoch, held(group)["A"]
    assert now > old

    def commit(epoch: int, index: int) -> None:
        committing.check_committer(group, epoch, "A", 5, [(topic_id, index)])

    commit(now, 9)
    commit(old, kept)
    assert refused(commit, old, 9) is ErrorCode.ILLEGAL_GENERATION
    assert refused(commit, now + 1, kept) is ErrorCode.ILLEGAL_GENERATION
    committing.check_fetcher(group, now, "A")
    assert refused(committing.check_fetcher, group, old, "A") is ErrorCode.ILLEGAL_GENERATION


def test_members_leave_by_their_id_or_their_instance() -> None:
    world = mixed(t=4)
    join(world, "", instance_id="s", new_member_id="S")
    group = world.group
    assert classic_members.leaving(group, "C", None).member_id == "C"
    assert classic_members.leaving(group, "", "s").member_id == "S"
    assert classic_members.leaving(group, "S", "s").member_id == "S"
    assert refused(classic_members.leaving, group, "X", None) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(classic_members.leaving, group, "", "x") is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(classic_members.leaving, group, "A", "s") is ErrorCode.FENCED_INSTANCE_ID


# --- from consumer to classic ---------------------------------------------------------------------------------------


def test_the_group_is_classic_when_the_last_member_of_the_new_protocol_is_gone() -> None:
    world = mixed(t=4)
    has, epoch = held(world.group)["A"], world.group.epoch
    world.fence("C")
    classic = world.classic
    assert classic is not None
    assert world.is_rebalancing
    assert (classic.state, classic.generation) == (GroupState.STABLE, epoch)
    assert (classic.protocol_type, classic.protocol_name, classic.leader_id) == ("consumer", "range", "A")
    assert given(classic) == {"A": has}
    assert not world.groups, "nothing is left of the consumer group"


def test_a_member_that_has_yet_to_give_something_up_has_it_in_the_classic_group() -> None:
    world = mixed(t=6)
    owned = held(world.group)["A"]
    beat(world, "D")
    join(world, "A", owned=owned)
    assert world.group.members["A"].state is MemberState.UNREVOKED_PARTITIONS
    world.fence("D")
    assert world.groups, "C is there still"
    world.fence("C")
    assert world.classic is not None
    assert given(world.classic) == {"A": owned}


@pytest.mark.parametrize(
    ("settings", "gone", "expected"),
    [
        ({}, ["C"], True),
        ({}, ["A"], False),
        ({}, ["A", "C"], True),
        ({}, ["A", "B", "C"], False),
        ({"classic_members_max": 1}, ["C"], False),
        ({"classic_members_max": 1}, ["B", "C"], True),
        ({"migration": MigrationPolicy.UPGRADE}, ["C"], False),
        ({"migration": MigrationPolicy.DISABLED}, ["C"], False),
        ({"migration": MigrationPolicy.DOWNGRADE}, ["C"], True),
    ],
)
def test_when_a_group_may_be_downgraded(settings: dict[str, Any], gone: list[str], expected: bool) -> None:
    world = mixed(t=4)
    join(world, "B")
    members = [world.group.members[name] for name in gone]
    assert may_downgrade(world.group, members, replace(world.settings, **settings)) is expected


def static_and_classic() -> World:
    """A group of a static member of the new protocol and a classic one; all is settled."""
    world = World(t=4)
    turn(world, classic_group(3, A=assignment(0, 1)))
    beat(world, "S1", instance_id="s")
    join(world, "A", owned=[0, 1])
    epoch = world.group.epoch
    for _ in range(2):
        assigned = {topic_id: [*has] for topic_id, has in world.group.members["S1"].assigned.items()}
        beat(world, "S1", world.group.members["S1"].epoch, instance_id="s", owned=assigned)
    join(world, "A", owned=held(world.group)["A"])
    assert world.group.epoch == epoch
    return world


def test_a_static_member_that_comes_back_by_the_classic_protocol_takes_the_group_with_it() -> None:
    world = static_and_classic()
    has, epoch = held(world.group), world.group.epoch
    change = join(world, "", instance_id="s", new_member_id="S2")
    assert world.classic is not None
    assert not world.is_rebalancing, "nothing has changed"
    assert change.epoch == world.classic.generation == epoch
    assert given(world.classic) == {"A": has["A"], "S2": has["S1"]}
    assert world.classic.instances == {"s": "S2"}
    assert not world.groups


def test_a_static_member_with_another_subscription_makes_the_classic_group_rebalance() -> None:
    """KAFKA-19546."""
    world = static_and_classic()
    epoch = world.group.epoch
    protocols = (("range", subscription(["t", "u"])),)
    change = join(world, "", instance_id="s", new_member_id="S2", protocols=protocols)
    assert world.classic is not None
    assert world.is_rebalancing
    assert (change.epoch, world.classic.generation) == (0, epoch)


def test_a_static_member_does_not_take_a_group_with_it_that_is_yet_to_reach_its_target() -> None:
    """The others would wait in vain for what they lack: no member of a classic group gives it to them."""
    world = static_and_classic()
    world.topics.grow("t", 6)
    beat(world, "S1", world.group.members["S1"].epoch, instance_id="s")
    join(world, "", instance_id="s", new_member_id="S2")
    assert world.classic is not None
    assert world.is_rebalancing


def test_the_policy_keeps_the_group_of_a_static_member_a_consumer_group() -> None:
    world = static_and_classic()
    world.settings = replace(world.settings, migration=MigrationPolicy.UPGRADE)
    join(world, "", instance_id="s", new_member_id="S2")
    assert world.classic is None
    assert world.group.classic_count == 2


def test_a_group_goes_there_and_back() -> None:
    world = mixed(t=4)
    world.fence("C")
    assert world.classic is not None
    has = given(world.classic)
    turn(world, world.classic)
    assert held(world.group) == has
