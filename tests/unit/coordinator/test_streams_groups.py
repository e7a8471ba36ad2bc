"""The shell around streams groups: writes that wait or fail, time, other protocols, and a new group coordinator."""

import asyncio
from typing import Any

import pytest

from kavka_broker.coordinator.groups.classic_groups import SESSION_COST
from kavka_broker.coordinator.groups.group_commands import StreamsHeard
from kavka_broker.coordinator.groups.group_loading import load
from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.core.consumer_group.checks import Heartbeat
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.group.image import STREAMS, GroupImage
from kavka_broker.core.group.offsets import Commit
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.streams_group.checks import StreamsHeartbeat
from kavka_broker.core.streams_group.committing import check_fetcher
from kavka_broker.core.streams_group.settings import StreamsGroupSettings
from kavka_broker.core.streams_group.state import StreamsGroup
from kavka_broker.core.streams_group.statuses import StatusCode
from kavka_broker.core.streams_group.tasks import TaskTarget
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages import streams_group_heartbeat_request as sent
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from tests.support.waiting import until
from tests.unit.consumer_group.classic import join_command
from tests.unit.coordinator.fakes import WEEK_MS, World, commit, expire, offset, pacing, play

SETTINGS = StreamsGroupSettings(assignment_interval_ms=0, initial_rebalance_delay_ms=0)
TASKS = TaskTarget({"0": frozenset({0, 1})})


def begin(settings: StreamsGroupSettings = SETTINGS) -> World:
    world = World(streams=lambda _: settings)
    for index in range(2):
        world.happens(PartitionRecord(index, b"t" * 16))
    return world


def beat(world: World, name: str, epoch: int, settings: StreamsGroupSettings = SETTINGS, **said: Any) -> StreamsHeard:
    if epoch == 0:
        topology = sent.Topology(0, [sent.Subtopology("0", source_topics=["t"])])
        said = {"topology": topology, "rebalance_timeout_ms": 1_000, "process_id": name, "owned": TaskTarget(), **said}
    heard = world.shard.streams.heartbeat(StreamsHeartbeat("g", name, epoch, "client", "/h", **said), settings)
    assert isinstance(heard, tuple), "a small group is served at once"
    return heard


def group_of(world: World) -> StreamsGroup:
    return world.shard.streams.existing("g")


def refusal(call: Any, *arguments: Any, **fields: Any) -> tuple[ErrorCode, str | None]:
    with pytest.raises(BrokerError) as refused:
        call(*arguments, **fields)
    return refused.value.code, refused.value.message


def test_an_answer_waits_for_its_records() -> None:
    async def scenario() -> None:
        world = begin()
        world.partition.holds = True
        change, waiting = beat(world, "a", 0)
        assert change.epoch == 2
        assert change.assigned is not None
        assert change.assigned.tasks == TASKS
        assert waiting is not None
        assert not waiting.done()
        await world.partition.commit()
        assert await waiting is ErrorCode.NONE
        world.partition.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        assert refusal(beat, world, "b", 0)[0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert list(group_of(world).members) == ["a"], "nothing has changed"

    play(scenario)


def test_the_first_target_is_computed_when_its_delay_has_passed() -> None:
    async def scenario() -> None:
        settings = StreamsGroupSettings(initial_rebalance_delay_ms=3_000)
        world = begin(settings)
        change, _ = beat(world, "a", 0, settings)
        assert [status.code for status in change.statuses] == [StatusCode.ASSIGNMENT_DELAYED]
        world.advance(3_100)
        await until(lambda: group_of(world).assignment_epoch == 2)
        change, _ = beat(world, "a", change.epoch, settings)
        assert change.assigned is not None
        assert change.assigned.tasks == TASKS

    play(scenario)


def test_a_target_that_cannot_be_written_is_computed_by_a_heartbeat() -> None:
    async def scenario() -> None:
        settings = StreamsGroupSettings(initial_rebalance_delay_ms=3_000)
        world = begin(settings)
        beat(world, "a", 0, settings)
        world.partition.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        world.advance(3_100)
        await asyncio.sleep(0)
        world.partition.refuses = None
        assert beat(world, "a", 1, settings)[0].epoch == 2

    play(scenario)


def test_a_silent_member_is_fenced_and_one_that_keeps_its_tasks_too() -> None:
    async def scenario() -> None:
        world = begin()
        beat(world, "a", 0)
        world.advance(40_000)
        beat(world, "b", 0)
        world.advance(6_000)
        assert list(group_of(world).members) == ["b"]
        epoch = beat(world, "b", group_of(world).members["b"].epoch)[0].epoch
        beat(world, "c", 0)
        beat(world, "b", epoch, owned=TASKS)
        world.advance(1_100)
        assert list(group_of(world).members) == ["c"], "b was to give up a task within a second"

    play(scenario)


def test_a_new_coordinator_goes_on_where_the_former_one_was() -> None:
    async def scenario() -> None:
        world = begin()
        epoch = beat(world, "a", 0)[0].epoch
        before = group_of(world)
        successor = Shard(
            world.partition,
            world.removals,
            GroupSettings(streams=lambda _: SETTINGS),
            pacing(world.clock, world.timers),
            5_000,
        )
        await load(world.partition, successor.image)
        assert successor.image.streams_groups == {"g": before}
        assert successor.image.type_of(successor.image.streams_groups["g"]) == STREAMS
        assert max(successor.expect_members()) <= SESSION_COST, "however many members a group has"
        successor.open()
        list(world.shard.close())
        assert refusal(beat, world, "a", epoch)[0] is ErrorCode.GROUP_ID_NOT_FOUND
        world.shard = successor
        change, _ = beat(world, "a", epoch)
        assert (change.epoch, change.assigned, change.records) == (epoch, None, [])
        world.advance(46_000)
        assert not group_of(world).members

    play(scenario)


def test_a_large_topology_is_decided_in_a_thread() -> None:
    async def scenario() -> None:
        world = begin()
        stores = [sent.TopicInfo(f"store-{number}") for number in range(300)]
        topology = sent.Topology(0, [sent.Subtopology("0", source_topics=["t"], state_changelog_topics=stores)])
        joining = StreamsHeartbeat("g", "a", 0, topology=topology, rebalance_timeout_ms=1_000)
        heard = world.shard.streams.heartbeat(joining, SETTINGS)
        assert not isinstance(heard, tuple)
        heard = asyncio.ensure_future(heard)
        await until(lambda: world.shard.streams.is_changing("g"))
        assert refusal(world.shard.join, "g", join_command())[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        change, _ = await heard
        assert len(change.internal_topics) == 300

    play(scenario)


def test_two_large_joins_do_not_take_the_same_room() -> None:
    async def scenario() -> None:
        world = begin()
        world.shard.streams.bytes_max = 700_000
        epoch = beat(world, "a", 0)[0].epoch
        stores = [sent.TopicInfo(f"store-{number}") for number in range(1_500)]
        topology = sent.Topology(0, [sent.Subtopology("0", source_topics=["t"], state_changelog_topics=stores)])

        async def join(group_id: str) -> StreamsHeard:
            joining = StreamsHeartbeat(group_id, "x", 0, topology=topology, rebalance_timeout_ms=1, process_id="x")
            heard = world.shard.streams.heartbeat(joining, SETTINGS)
            return heard if isinstance(heard, tuple) else await heard

        joined = await asyncio.gather(join("b"), join("c"), return_exceptions=True)
        (refused,) = [one for one in joined if isinstance(one, BrokerError)]
        assert refused.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert beat(world, "a", epoch)[0].epoch == epoch

    play(scenario)


# --- other protocols ------------------------------------------------------------------------------------------------


def test_a_classic_group_without_members_becomes_a_streams_group_with_its_offsets() -> None:
    async def scenario() -> None:
        world = begin()
        commit(world, "g", 7)
        beat(world, "a", 0)
        assert offset(world, "g") == 7
        assert "g" not in world.shard.image.groups
        image = GroupImage()
        await load(world.partition, image)
        assert list(image.streams_groups) == ["g"]
        assert not image.groups

    play(scenario)


def test_a_group_of_another_protocol_is_not_a_streams_group() -> None:
    async def scenario() -> None:
        world = begin()
        joining = Heartbeat("g", "c", 0, topics=["t"], owned={}, rebalance_timeout_ms=1_000)
        world.shard.consumers.heartbeat(joining, ConsumerGroupSettings(rebalance_interval_ms=0))
        not_found = ErrorCode.GROUP_ID_NOT_FOUND
        assert refusal(beat, world, "a", 0) == (not_found, "Group g is not a streams group.")
        assert refusal(world.shard.streams.existing, "x") == (not_found, "Group x not found.")

    play(scenario)


def test_a_streams_group_is_no_group_of_consumers() -> None:
    async def scenario() -> None:
        world = begin()
        beat(world, "a", 0)
        joining = Heartbeat("g", "c", 0, topics=["t"], owned={}, rebalance_timeout_ms=1_000)
        refused = refusal(world.shard.consumers.heartbeat, joining, ConsumerGroupSettings())
        assert refused == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group.")
        token = world.token()
        world.shard.join("g", join_command(token=token))
        answer = world.answer(token)
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        beat(world, "a", -1)
        world.shard.join("g", join_command(token=world.token()))
        assert world.shard.streams.get("g") is None, "without members it makes room"
        assert "g" in world.shard.image.groups

    play(scenario)


# --- offsets and the end --------------------------------------------------------------------------------------------


def test_a_member_commits_in_its_epoch_and_what_it_has_had_since_an_older_one() -> None:
    async def scenario() -> None:
        world = begin()
        epoch = beat(world, "a", 0)[0].epoch

        def commit_as(member_epoch: int, member_id: str = "a", topic: str = "t", version: int = 9) -> None:
            world.shard.commit("g", member_epoch, member_id, None, [Commit(topic, 0, 5)], -1, version)

        commit_as(epoch)
        assert offset(world, "g") == 5
        assert refusal(commit_as, epoch, version=8)[0] is ErrorCode.UNSUPPORTED_VERSION
        assert refusal(commit_as, epoch, "b")[0] is ErrorCode.UNKNOWN_MEMBER_ID
        assert refusal(commit_as, -1, "")[0] is ErrorCode.UNKNOWN_MEMBER_ID
        assert refusal(commit_as, epoch + 1)[0] is ErrorCode.STALE_MEMBER_EPOCH
        assert refusal(commit_as, epoch - 1) == (
            ErrorCode.STALE_MEMBER_EPOCH,
            f"Received member epoch {epoch - 1} is older than assignment epoch {epoch} for task 0-0.",
        )
        beat(world, "a", epoch, rack_id="r", owned=TASKS)
        assert group_of(world).members["a"].epoch == epoch + 1
        commit_as(epoch)
        assert refusal(commit_as, epoch, topic="u")[1] == "Topic u is not in the topology."
        check = world.shard.staging.check
        check("g", epoch, "a", None, [Commit("t", 0, 5)])
        check("g", -1, "", None, [Commit("u", 0, 5)])
        assert refusal(check, "g", epoch, "a", None, [Commit("u", 0, 5)])[0] is ErrorCode.ILLEGAL_GENERATION
        told = refusal(check, "g", epoch, "a", None, [Commit("u", 0, 5)], knows_epochs=True)
        assert told[0] is ErrorCode.STALE_MEMBER_EPOCH
        check_fetcher(group_of(world), epoch + 1, "a")
        check_fetcher(group_of(world), -1, None)
        assert refusal(check_fetcher, group_of(world), epoch, "a")[0] is ErrorCode.STALE_MEMBER_EPOCH

    play(scenario)


def test_a_group_without_members_is_deleted_with_its_offsets() -> None:
    async def scenario() -> None:
        world = begin()
        beat(world, "a", 0)
        world.shard.commit("g", 2, "a", None, [Commit("t", 0, 5)], -1, 9)
        assert refusal(world.shard.delete_group, "g")[0] is ErrorCode.NON_EMPTY_GROUP
        assert world.shard.delete_offsets("g", [("t", 0)]) == ({"t"}, None), "the topology reads it"
        beat(world, "a", -1)
        assert world.shard.delete_offsets("g", [("t", 0)])[0] == set()
        world.shard.delete_group("g")
        assert world.shard.image.find("g") is None
        image = GroupImage()
        await load(world.partition, image)
        assert image.find("g") is None

    play(scenario)


def test_a_group_ends_with_its_last_offset() -> None:
    async def scenario() -> None:
        world = begin()
        beat(world, "a", 0)
        world.shard.commit("g", 2, "a", None, [Commit("t", 0, 5)], -1, 9)
        for _ in range(16):
            world.advance(WEEK_MS // 15)
            beat(world, "a", 0)
            assert not expire(world), "a source topic keeps its offsets"
        beat(world, "a", -1)
        assert expire(world)
        assert world.shard.image.find("g") is None

    play(scenario)
