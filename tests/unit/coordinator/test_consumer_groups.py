"""The shell around groups of the new protocol: writes that wait or fail, time, and a new coordinator."""

import asyncio
import threading
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kavka_broker.api.a69_consumer_group_describe import consumer_group_describe
from kavka_broker.coordinator.groups import topic_expressions
from kavka_broker.coordinator.groups.arrivals import Arrivals
from kavka_broker.coordinator.groups.group_commands import Heard
from kavka_broker.coordinator.groups.group_loading import load
from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.core.consumer_group import heartbeat as rules
from kavka_broker.core.consumer_group.assignors import uniform
from kavka_broker.core.consumer_group.checks import Heartbeat
from kavka_broker.core.consumer_group.heartbeat import Change
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ConsumerGroup, MemberState
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.join import Join
from kavka_broker.core.group.membership import Departure
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.loop.slices import Slices
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kavka_broker.protocol.messages.consumer_group_describe_response import DescribedGroup
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.request.broker import Client
from tests.support.waiting import until
from tests.unit.coordinator.fakes import World, commit, expire, offset, pacing, play

PARTITIONS = 4
SETTINGS = ConsumerGroupSettings(rebalance_interval_ms=0)  # members do not gather


def world_with_topic(**settings: int) -> World:
    world = World(**settings)
    world.happens(PartitionRecord(0, b"t" * 16))
    for index in range(1, PARTITIONS):
        world.happens(PartitionRecord(index, b"t" * 16))
    return world


def beat(world: World, name: str, epoch: int, **fields: Any) -> tuple[Change, "asyncio.Future[ErrorCode] | None"]:
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 20_000, "topics": ("t",), "owned": {}, **fields}
    heard = world.shard.consumers.heartbeat(Heartbeat("g", name, epoch, "client", "/h", **fields), SETTINGS)
    assert isinstance(heard, tuple), "a small group is served at once"
    return heard


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
            world.partition, world.removals, GroupSettings(), pacing(world.clock, world.timers), commit_timeout_ms=5_000
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


def test_a_member_of_a_large_group_leaves_though_its_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world, held = world_with_topic(), Held(monkeypatch)
        held.may_go_on.set()
        await later(world, "a", 0)
        leaving = later(world, "a", -1)
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        await settled(world)
        assert not group_of(world).members

    play(scenario)


def test_many_owned_partitions_and_many_that_are_held_are_no_work_for_the_loop() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        beat(world, "a", 0)
        await later(world, "a", 2, owned={b"t" * 16: [0] * 1_000})
        for index in range(PARTITIONS, 300):
            world.happens(PartitionRecord(index, b"t" * 16))
        world.advance(1_100)
        await later(world, "a", 2)
        world.delete_topic("t")
        world.advance(1_100)
        assert (await later(world, "a", 3))[0].assigned == {}

    play(scenario)


async def leave(world: World, *departures: Departure) -> list[ErrorCode]:
    left = world.shard.leave("g", departures)
    assert not isinstance(left, list), "it is a consumer group"
    return await left


def test_an_operator_is_answered_when_the_removal_is_committed() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        beat(world, "a", 0, instance_id="i")
        world.partition.holds = True
        removing = asyncio.ensure_future(leave(world, Departure("", "i")))
        await asyncio.sleep(0)
        assert not removing.done()
        await world.partition.commit(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        assert await removing == [ErrorCode.NOT_COORDINATOR]

    play(scenario)


# --- expressions ----------------------------------------------------------------------------------------------------


def expressing(
    world: World, name: str, epoch: int, regex: str, rights: Any = None
) -> "asyncio.Task[tuple[Change, Any]]":
    sent = Heartbeat("g", name, epoch, "client", "/h", rebalance_timeout_ms=20_000, regex=regex, owned={})
    heard = world.shard.consumers.heartbeat(sent, SETTINGS, rights)
    assert not isinstance(heard, tuple)
    return asyncio.ensure_future(heard)


def test_an_expression_matches_what_the_member_may_describe_and_again_when_topics_come() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        change, _ = await expressing(world, "a", 0, "t|u|x.?", rights="u".__ne__)
        assert change.assigned == {b"t" * 16: dict.fromkeys(range(PARTITIONS), 2)}
        assert group_of(world).matched == {"t|u|x.?": {"t"}}
        world.make_topic("x")
        world.happens(PartitionRecord(0, b"x" * 16))
        world.advance(10_000)
        beat(world, "a", 2)
        await settled(world)
        assert group_of(world).matched == {"t|u|x.?": {"t", "u", "x"}}, "by the rights of who was heard of last"
        change, _ = beat(world, "a", 2)
        assert (change.epoch, sorted(change.assigned or {})) == (3, [b"t" * 16, b"x" * 16])
        image = GroupImage()
        await load(world.partition, image)
        assert image.consumer_groups == {"g": group_of(world)}

    play(scenario)


@pytest.mark.parametrize("regex", ["(", "a(?=b)", r"(a)\1", "x" * 1_001])
def test_an_expression_that_cannot_be_read_is_refused(regex: str) -> None:
    async def scenario() -> None:
        world = world_with_topic()
        with pytest.raises(BrokerError, match="is not a valid regular expression") as refused:
            await expressing(world, "a", 0, regex)
        assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert world.shard.consumers.get("g") is None

    play(scenario)


def test_an_expression_of_the_log_that_cannot_be_read_here_matches_nothing() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        await expressing(world, "a", 0, "t")
        group = group_of(world)
        group.put(replace(group.members["a"], regex="t(?=a)"))
        group.forget_matched("t")
        beat(world, "a", 2)
        await settled(world)
        assert group_of(world).matched == {"t(?=a)": frozenset()}
        world.advance(1_100)
        assert beat(world, "a", 2)[0].assigned == {}
        assert beat(world, "a", 2, owned={})[0].epoch == 3

    play(scenario)


def test_a_topic_that_comes_while_an_expression_is_matched_is_found_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world = world_with_topic()
        matching = topic_expressions.matching_of

        def matching_late(*arguments: Any) -> list[str]:
            if "x" not in {topic.name for topic in world.topics}:
                world.make_topic("x")
            return matching(*arguments)

        monkeypatch.setattr(topic_expressions, "matching_of", matching_late)
        await expressing(world, "a", 0, "[tx]")
        assert group_of(world).matched == {"[tx]": {"t"}}
        world.advance(10_000)
        beat(world, "a", 2)
        await settled(world)
        assert group_of(world).matched == {"[tx]": {"t", "x"}}

    play(scenario)


def tasks_that_match() -> list["asyncio.Task[Any]"]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "match expressions"]


def test_expressions_that_the_log_refuses_are_matched_again_after_a_while() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        await expressing(world, "a", 0, "t|x")
        await expressing(world, "b", 0, "[ux]")
        world.advance(1_100)
        for name in "ab":
            beat(world, name, 2)
        world.make_topic("x")
        world.partition.refuses = ErrorCode.MESSAGE_TOO_LARGE
        world.advance(10_000)
        for _ in range(2):
            beat(world, "a", 3)
            await asyncio.gather(*tasks_that_match(), return_exceptions=True)
        assert group_of(world).matched == {"t|x": {"t"}, "[ux]": {"u"}}
        world.partition.refuses = None
        beat(world, "a", 3)
        assert "g" in world.shard.consumers.upkeep.at_work, "not at each heartbeat"
        world.advance(10_100)
        beat(world, "a", 3)
        await settled(world)
        assert group_of(world).matched == {"t|x": {"t", "x"}, "[ux]": {"u", "x"}}

    play(scenario)


def test_a_group_is_deleted_with_its_expressions_and_takes_no_room_any_more() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        await expressing(world, "a", 0, "t")
        beat(world, "a", -1)
        world.shard.delete_group("g")
        assert world.shard.consumers.room_bytes == world.shard.consumers.bytes_max
        image = GroupImage()
        await load(world.partition, image)
        assert (image.groups, image.consumer_groups) == ({}, {})

    play(scenario)


# --- as it is described ---------------------------------------------------------------------------------------------


async def describe(world: World, group_id: str = "g", *, operations: bool = False) -> DescribedGroup:
    groups = SimpleNamespace(shard=lambda _: world.shard, settings=GroupSettings())
    metadata = SimpleNamespace(topics=world.topics, features=SimpleNamespace(level=lambda _: 1))
    config = {"group.coordinator.rebalance.protocols": ["consumer"]}
    broker: Any = SimpleNamespace(groups=groups, slices=Slices(), metadata=metadata, config=config)
    client = Client(1, "c", 7, "127.0.0.1", "PLAINTEXT")
    request = ConsumerGroupDescribeRequest([group_id], operations)
    (described,) = (await consumer_group_describe(request, broker, client)).groups
    return described


def test_a_group_is_described_once_what_is_told_is_committed() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        world.partition.holds = True
        beat(world, "a", 0)
        describing = asyncio.ensure_future(describe(world))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not describing.done()
        await world.partition.commit()
        described = await describing
        assert (described.group_epoch, described.group_state) == (2, "Stable")
        (member,) = described.members
        assert [topic.partitions for topic in member.assignment.topic_partitions] == [list(range(PARTITIONS))]
        assert member.target_assignment.topic_partitions[0].topic_name == "t"
        beat(world, "b", 0)
        lost = asyncio.ensure_future(describe(world))
        await asyncio.sleep(0)
        await world.partition.commit(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        assert ((await lost).error_code, (await lost).members) == (ErrorCode.NOT_COORDINATOR, [])

    play(scenario)


def test_without_an_authorizer_every_operation_on_a_group_is_allowed() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        beat(world, "a", 0)
        read, delete, describe_it, describe_configs, alter_configs = 3, 6, 8, 10, 11
        every = sum(1 << operation for operation in (read, delete, describe_it, describe_configs, alter_configs))
        assert (await describe(world, operations=True)).authorized_operations == every
        not_asked = DescribedGroup().authorized_operations
        assert (await describe(world)).authorized_operations == not_asked
        assert (await describe(world, "missing", operations=True)).authorized_operations == not_asked

    play(scenario)


def test_a_group_without_an_id_is_invalid() -> None:
    async def scenario() -> None:
        assert (await describe(world_with_topic(), "")).error_code == ErrorCode.INVALID_GROUP_ID

    play(scenario)


# --- large groups ---------------------------------------------------------------------------------------------------


class Held:
    """An assignor that waits, in its thread, until the test lets it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_go_on = threading.Event()
        self.began = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        monkeypatch.setattr(rules, "AT_ONCE_STEPS_MAX", 3)
        monkeypatch.setattr(rules, "ASSIGNORS", {"uniform": self.assign, "range": self.assign})

    def assign(self, *arguments: Any) -> Any:
        self._loop.call_soon_threadsafe(self.began.set)
        assert self.may_go_on.wait(30), "the loop was held, or the test forgot it"
        return uniform(*arguments)


def later(world: World, name: str, epoch: int, **fields: Any) -> "asyncio.Task[tuple[Change, Any]]":
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 20_000, "topics": ("t",), "owned": {}, **fields}
    heard = world.shard.consumers.heartbeat(Heartbeat("g", name, epoch, "client", "/h", **fields), SETTINGS)
    assert not isinstance(heard, tuple)
    return asyncio.ensure_future(heard)


async def settled(world: World) -> None:
    """Wait for commands, also those that were begun by timers."""
    await asyncio.sleep(0)
    consumers = world.shard.consumers
    await until(lambda: not consumers.is_changing("g") and not consumers.upkeep.at_work)


def test_a_large_group_is_worked_out_in_a_thread_and_its_other_commands_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world, held = world_with_topic(), Held(monkeypatch)
        commit(world, "g", 7)
        joining = later(world, "a", 0)
        await held.began.wait()
        assert world.shard.consumers.get("g") is None, "nobody sees what may not come true"
        second, gone = later(world, "b", 0), later(world, "a", -1)
        assert refusal(world.shard.delete_group, "g") is ErrorCode.NON_EMPTY_GROUP
        assert refusal(world.shard.consumers.make_classic, "g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        held.may_go_on.set()
        assert (await joining)[0].assigned == {b"t" * 16: dict.fromkeys(range(PARTITIONS), 2)}
        assert (await second)[0].epoch == 2, "the interval of assignments is not over"
        assert (await gone)[0].epoch == -1
        assert list(group_of(world).members) == ["b"]
        image = GroupImage()
        await load(world.partition, image)
        assert image.consumer_groups == {"g": group_of(world)}

    play(scenario)


def test_what_was_worked_out_for_a_shard_that_closed_meanwhile_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world, held = world_with_topic(), Held(monkeypatch)
        joining = later(world, "a", 0)
        await held.began.wait()
        second, known = later(world, "b", 0), later(world, "c", 4)
        list(world.shard.close())
        held.may_go_on.set()
        for refused in await asyncio.gather(joining, second, known, return_exceptions=True):
            assert isinstance(refused, BrokerError)
            assert refused.code is ErrorCode.NOT_COORDINATOR
        assert world.partition.log.log_end_offset == 0
        assert not world.shard.consumers.timers.running

    play(scenario)


def test_a_member_of_a_large_group_is_fenced_in_its_turn_unless_it_was_heard_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        world, held = world_with_topic(), Held(monkeypatch)
        held.may_go_on.set()
        await later(world, "a", 0)
        await later(world, "b", 0)
        world.advance(40_000)
        heard = later(world, "a", 2, rebalance_timeout_ms=20_000, topics=("t", "u"), owned={})
        await asyncio.sleep(0)
        world.advance(5_500)  # both sessions are over; the heartbeat of one has its turn before
        await heard
        await settled(world)
        assert list(group_of(world).members) == ["a"]
        world.partition.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        world.advance(45_500)
        await settled(world)
        assert list(group_of(world).members) == ["a"], "its end cannot be written"
        world.partition.refuses = None
        world.advance(1_100)
        await settled(world)
        assert not group_of(world).members

    play(scenario)


def test_a_heartbeat_that_finds_nothing_to_do_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world, held = world_with_topic(), Held(monkeypatch)
        held.may_go_on.set()
        await later(world, "a", 0)
        assert beat(world, "a", 2)[0].records == []
        world.happens(PartitionRecord(PARTITIONS, b"t" * 16))
        world.advance(1_100)
        assert (await later(world, "a", 2))[0].epoch == 3

    play(scenario)


def test_members_are_bounded_in_bytes_over_all_groups() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        world.shard.consumers.bytes_max = 3_000
        beat(world, "a", 0)
        beat(world, "b", 0)
        assert refusal(beat, world, "c", 0) is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert refusal(beat, world, "a", 2, topics=[f"topic-{n}" for n in range(9)]) is ErrorCode.GROUP_MAX_SIZE_REACHED
        beat(world, "b", -1)
        beat(world, "c", 0)
        assert group_of(world).size_bytes == sum(member.size_bytes for member in group_of(world).members.values())

    play(scenario)


# --- the other protocol ---------------------------------------------------------------------------------------------


def join(world: World) -> Any:
    token = world.token()
    command = Join(token, "", None, "c", "/h", 10_000, 30_000, "consumer", (("range", b""),), "new", False, True)
    world.shard.join("g", command)
    return world.answer(token) if token.done() else None


def test_an_empty_group_is_whatever_comes() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        beat(world, "a", 0)
        beat(world, "a", -1)
        assert join(world) is None, "it waits for others"
        assert world.shard.consumers.get("g") is None
        assert refusal(beat, world, "a", 0) is ErrorCode.GROUP_ID_NOT_FOUND, "its subscription cannot be read"

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
        unknown = await leave(world, Departure("", "j"), Departure("b", None), Departure("b", "i"))
        assert unknown == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID]
        assert await leave(world, Departure("", "j"), Departure("", "i")) == [
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.NONE,
        ]
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


# --- members that come together -------------------------------------------------------------------------------------

GATHERING = ConsumerGroupSettings()


def arriving(world: World, *names: str, **fields: Any) -> list["asyncio.Task[Heard]"]:
    """First heartbeats, which are held."""
    tasks = []
    for name in names:
        first = Heartbeat("g", name, 0, "client", "/h", rebalance_timeout_ms=20_000, topics=("t",), owned={}, **fields)
        heard = world.shard.consumers.heartbeat(first, GATHERING)
        assert not isinstance(heard, tuple), "another member may come"
        tasks.append(asyncio.ensure_future(heard))
    return tasks


async def let_go(world: World, ms: int = 25) -> None:
    await asyncio.sleep(0)
    world.advance(ms)
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("names", "expected"), [(("a",), {PARTITIONS}), (("a", "b"), {0})])
def test_a_member_is_held_a_moment_and_assigned_unless_another_comes(
    names: tuple[str, ...], expected: set[int]
) -> None:
    async def scenario() -> None:
        world = world_with_topic()
        tasks = arriving(world, *names)
        await let_go(world, 10)
        assert not any(task.done() for task in tasks)
        await let_go(world, 15)
        changes = [task.result()[0] for task in tasks]
        assert {sum(map(len, (change.assigned or {}).values())) for change in changes} == expected

    play(scenario)


def test_two_members_that_come_together_are_assigned_at_once_when_none_comes_any_more() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        tasks = arriving(world, "a", "b")
        await let_go(world)
        (epoch,) = {task.result()[0].epoch for task in tasks}
        world.advance(250)
        for name in "ab":
            heard = world.shard.consumers.heartbeat(Heartbeat("g", name, epoch, "client", "/h"), GATHERING)
            assert isinstance(heard, tuple)
            assert heard[0].assigned is not None
            assert sum(map(len, heard[0].assigned.values())) == PARTITIONS // 2
        assert group_of(world).targets.keys() == {"a", "b"}

    play(scenario)


def test_a_member_with_an_expression_is_held_too() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        tasks = arriving(world, "a", "b", regex="t")
        await let_go(world)
        await until(lambda: all(task.done() for task in tasks))
        assert not any(task.result()[0].assigned for task in tasks)

    play(scenario)


def test_members_that_are_held_hear_that_the_coordinator_has_moved() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        (task,) = arriving(world, "a")
        await asyncio.sleep(0)
        world.shard.consumers.close()
        with pytest.raises(BrokerError) as refused:
            await task
        assert refused.value.code is ErrorCode.NOT_COORDINATOR
        assert world.shard.consumers.get("g") is None

    play(scenario)


def test_a_member_that_comes_again_is_no_other() -> None:
    async def scenario() -> None:
        world = World()
        arrivals = Arrivals(world.timers)
        tasks = [asyncio.ensure_future(arrivals.arrive("g", "a")) for _ in range(2)]
        await let_go(world)
        assert [task.result() for task in tasks] == [False, False]

    play(scenario)


def test_members_that_come_and_go_while_another_is_held_leave_nothing() -> None:
    """Of a group that never comes to be, as their heartbeats are refused."""

    async def scenario() -> None:
        world = World()
        arrivals = Arrivals(world.timers)
        held = [asyncio.ensure_future(arrivals.arrive("g", "first"))]
        tracemalloc.start()
        try:
            for number in range(100):
                held.append(asyncio.ensure_future(arrivals.arrive("g", f"{number:032000}")))
                await let_go(world, 15)
                held = [task for task in held if not task.done()]
                assert held, "the holds overlap"
            assert tracemalloc.get_traced_memory()[0] < 1_000_000
        finally:
            tracemalloc.stop()
        await let_go(world)
        assert await asyncio.gather(*held) == [True] * len(held)

    play(scenario)
