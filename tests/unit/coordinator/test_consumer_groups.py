"""The shell around groups of the new protocol: writes that wait or fail, time, and a new coordinator."""

import asyncio
from typing import Any

import pytest

from kavka_broker.coordinator.group_loading import load
from kavka_broker.coordinator.group_shard import Shard
from kavka_broker.core.consumer_group.checks import Heartbeat
from kavka_broker.core.consumer_group.heartbeat import Change
from kavka_broker.core.consumer_group.state import ConsumerGroup, MemberState
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.join import Join
from kavka_broker.core.group.membership import Departure
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.loop.slices import Slices
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from tests.unit.coordinator.fakes import World, commit, expire, offset, play

PARTITIONS = 4


def world_with_topic(**settings: int) -> World:
    world = World(**settings)
    world._happens(PartitionRecord(0, b"t" * 16))
    for index in range(1, PARTITIONS):
        world._happens(PartitionRecord(index, b"t" * 16))
    return world


def beat(world: World, name: str, epoch: int, **fields: Any) -> tuple[Change, "asyncio.Future[ErrorCode] | None"]:
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 20_000, "topics": ("t",), "owned": {}, **fields}
    return world.shard.consumers.heartbeat(Heartbeat("g", name, epoch, "client", "/h", **fields))


def group_of(world: World) -> ConsumerGroup:
    group = world.shard.consumers.get("g")
    assert group is not None
    return group


def refusal(call: Any, *arguments: Any, **fields: Any) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        call(*arguments, **fields)
    return refused.value.code


def test_a_member_is_answered_when_its_records_are_committed() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        world.partition.holds = True
        change, waiting = beat(world, "a", 0)
        assert (change.epoch, change.assigned) == (2, {b"t" * 16: dict.fromkeys(range(PARTITIONS), 2)})
        assert waiting is not None
        assert not waiting.done()
        await world.partition.commit()
        assert await waiting is ErrorCode.NONE
        assert beat(world, "a", 2)[1] is None, "nothing was written, and nothing is waited for"

    play(scenario)


def test_an_answer_without_records_waits_for_what_it_rests_on() -> None:
    """A member that asks again must not hear of an assignment that a new coordinator may never have heard of."""

    async def scenario() -> None:
        world = world_with_topic()
        world.partition.holds = True
        _, first = beat(world, "a", 0)
        change, again = beat(world, "a", 2, rebalance_timeout_ms=20_000, topics=("t",), owned={})
        assert change.records == []
        assert change.assigned == {b"t" * 16: dict.fromkeys(range(PARTITIONS), 2)}
        assert first is not None
        assert again is not None
        await world.partition.commit(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        assert (await first, await again) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)

    play(scenario)


def test_an_append_that_the_log_refuses_changes_nothing() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        world.partition.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        assert refusal(beat, world, "a", 0) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert world.shard.consumers.get("g") is None
        world.partition.refuses = None
        assert beat(world, "a", 0)[0].epoch == 2

    play(scenario)


def test_a_silent_member_is_fenced_and_the_others_get_its_partitions() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        beat(world, "a", 0)
        world.advance(10_000)
        beat(world, "b", 0)
        world.partition.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        world.advance(36_000)
        assert list(group_of(world).members) == ["a", "b"], "its end cannot be written"
        world.partition.refuses = None
        world.advance(1_100)
        assert list(group_of(world).members) == ["b"]
        epoch = group_of(world).members["b"].epoch
        change, _ = beat(world, "b", epoch)
        assert change.assigned == {b"t" * 16: dict.fromkeys(range(PARTITIONS), change.epoch)}
        assert refusal(beat, world, "a", 2) is ErrorCode.UNKNOWN_MEMBER_ID

    play(scenario)


def test_a_member_that_does_not_give_up_in_time_is_fenced() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        beat(world, "a", 0)
        world.advance(2_000)
        beat(world, "b", 0)
        owned = {b"t" * 16: list(range(PARTITIONS))}
        beat(world, "a", 2, owned=owned)
        assert group_of(world).members["a"].state is MemberState.UNREVOKED_PARTITIONS
        for _ in range(4):
            world.advance(6_000)
            if "a" in group_of(world).members:
                beat(world, "a", 2, owned=owned)
        assert list(group_of(world).members) == ["b"]

    play(scenario)


def test_a_new_coordinator_goes_on_where_the_former_one_was() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        beat(world, "a", 0)
        world.advance(2_000)
        beat(world, "b", 0)
        beat(world, "a", 2, owned={b"t" * 16: list(range(PARTITIONS))})
        before = group_of(world)
        image = GroupImage()
        await load(world.partition, image)
        assert image.consumer_groups == {"g": before}
        successor = Shard(
            world.partition, world.removals, GroupSettings(), world.clock, world.timers, 5_000, slices=Slices()
        )
        await load(world.partition, successor.image)
        list(successor.expect_members())
        successor.open()
        list(world.shard.close())
        world.shard = successor
        assert beat(world, "a", 2, owned={b"t" * 16: [0, 1]})[0].epoch == 3
        assert beat(world, "b", 3)[0].assigned == {b"t" * 16: {2: 3, 3: 3}}
        world.advance(46_000)
        assert not group_of(world).members, "nobody is heard of any more"

    play(scenario)


def test_a_closed_shard_fences_nobody() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        beat(world, "a", 0)
        written = world.partition.log.log_end_offset
        list(world.shard.close())
        world.advance(60_000)
        assert world.partition.log.log_end_offset == written
        assert refusal(beat, world, "a", 0) is ErrorCode.NOT_COORDINATOR

    play(scenario)


# --- the other protocol ---------------------------------------------------------------------------------------------


def join(world: World) -> Any:
    token = world.token()
    command = Join(token, "", None, "c", "/h", 10_000, 30_000, "consumer", (("range", b""),), "new", False, True)
    world.shard.join("g", command)
    return world.answer(token) if token.done() else None


def test_a_group_with_members_keeps_its_protocol() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        beat(world, "a", 0)
        assert join(world).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert world.shard.heartbeat("g", 2, "a", None) is ErrorCode.UNKNOWN_MEMBER_ID
        beat(world, "a", -1)
        assert join(world) is None, "it waits for others"
        assert world.shard.consumers.get("g") is None
        assert refusal(beat, world, "a", 0) is ErrorCode.GROUP_ID_NOT_FOUND

    play(scenario)


def test_offsets_without_a_member_become_those_of_the_group_that_comes() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        commit(world, "g", 7)
        beat(world, "a", 0)
        assert (offset(world, "g"), "g" in world.shard.image.groups) == (7, False)
        image = GroupImage()
        await load(world.partition, image)
        assert ([*image.groups], [*image.consumer_groups]) == ([], ["g"])

    play(scenario)


def test_an_operator_removes_a_static_member_by_its_instance() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        beat(world, "a", 0, instance_id="i")
        departures = [Departure("", "j"), Departure("a", "i"), Departure("a"), Departure("", "i")]
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        assert world.shard.leave("g", departures) == [unknown, unknown, unknown, ErrorCode.NONE]
        assert not group_of(world).members

    play(scenario)


# --- offsets and the end --------------------------------------------------------------------------------------------


def test_a_group_is_deleted_when_it_is_empty_and_keeps_offsets_of_what_it_reads() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        commit(world, "g", 7)
        beat(world, "a", 0)
        assert refusal(world.shard.delete_group, "g") is ErrorCode.NON_EMPTY_GROUP
        assert world.shard.delete_offsets("g", [("t", 0)])[0] == {"t"}
        beat(world, "a", -1)
        world.shard.delete_group("g")
        assert (world.shard.consumers.get("g"), offset(world, "g")) == (None, None)
        image = GroupImage()
        await load(world.partition, image)
        assert (image.groups, image.consumer_groups) == ({}, {})

    play(scenario)


def test_offsets_expire_with_the_subscription_and_the_group_with_them() -> None:
    async def scenario() -> None:
        world = world_with_topic(offsets_retention_ms=60_000)
        commit(world, "g", 7)
        beat(world, "a", 0)
        for _ in range(3):
            world.advance(36_000)
            beat(world, "a", 2)
        expire(world)
        assert offset(world, "g") == 7
        beat(world, "a", -1)
        world.advance(61_000)
        expire(world)
        assert (world.shard.consumers.get("g"), offset(world, "g")) == (None, None)

    play(scenario)
