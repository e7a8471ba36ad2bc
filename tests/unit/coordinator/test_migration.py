"""The shell around groups that change their protocol (KIP-848): one batch, the members that wait, timers, races."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kavka_broker.coordinator.groups import classic_groups, consumer_groups, group_commands
from kavka_broker.coordinator.groups.group_loading import load
from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.consumer_group import classic_snapshot
from kavka_broker.core.consumer_group.checks import Heartbeat
from kavka_broker.core.consumer_group.heartbeat import Change
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ConsumerGroup
from kavka_broker.core.group.embedded_protocol import read_assignment
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.membership import Departure
from kavka_broker.core.group.state import ClassicGroup, GroupState, Member
from kavka_broker.core.group.sync import Sync
from kavka_broker.loop.slices import COST_PER_YIELD, YIELDS_PER_SLICE_MAX
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from tests.support.waiting import until
from tests.unit.consumer_group.classic import assignment, join_command, subscription
from tests.unit.coordinator.fakes import World, play

PARTITIONS = 6
SETTINGS = ConsumerGroupSettings(assignment_interval_ms=0)
BATCH_BYTES_MAX = 400
"""Takes a command of a member, and not a classic group of two."""
DELAY_MS = 3_000  # group.initial.rebalance.delay.ms


def world_with_topic() -> World:
    world = World(consumer=lambda _: SETTINGS)
    for index in range(PARTITIONS):
        world.happens(PartitionRecord(index, b"t" * 16))
    return world


def join(world: World, member_id: str = "", owned: Any = (), **fields: Any) -> Any:
    token = world.token()
    protocols = (("range", subscription(owned=owned)),)
    world.shard.join("g", join_command(member_id, **{"token": token, "protocols": protocols, **fields}))
    return token


def sync(world: World, member_id: str, generation: int, instance_id: str | None = None, **assignments: bytes) -> Any:
    token = world.token()
    world.shard.sync("g", Sync(token, generation, member_id, instance_id, "consumer", "range", assignments))
    return token


def code(answer: Any) -> ErrorCode:
    return ErrorCode(answer.result().error_code)


def has(answer: Any) -> list[int]:
    told = read_assignment(answer.result().assignment)
    return [index for place in told.assigned_partitions for index in place.partitions]


def beat(world: World, name: str, epoch: int, **fields: Any) -> Change:
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 20_000, "topics": ("t",), "owned": {}, **fields}
    heard = world.shard.consumers.heartbeat(Heartbeat("g", name, epoch, "client", "/h", **fields), SETTINGS)
    assert isinstance(heard, tuple), "a small group is served at once"
    return heard[0]


def refusal(call: Callable[..., Any], *arguments: Any, **fields: Any) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        call(*arguments, **fields)
    return refused.value.code


def stable(world: World) -> ClassicGroup:
    """A classic group of A, which leads, and B; each has three partitions."""
    for name in "AB":
        join(world, new_member_id=name)
    for _ in range(3):  # B prolongs the delay
        world.advance(DELAY_MS + 10)
    sync(world, "A", 1, A=assignment(0, 1, 2), B=assignment(3, 4, 5))
    sync(world, "B", 1)
    group = world.shard.image.groups["g"]
    assert group.state is GroupState.STABLE
    return group


def consumers(world: World) -> ConsumerGroup:
    group = world.shard.consumers.get("g")
    assert group is not None
    return group


async def reloaded(world: World) -> GroupImage:
    image = GroupImage()
    await load(world.partition, image)
    return image


async def check_replay(world: World) -> None:
    """Replay gives what is served, as far as it is written."""
    image = await reloaded(world)
    assert image.consumer_groups == world.shard.image.consumer_groups
    assert image.groups.keys() == world.shard.image.groups.keys()
    for group_id, group in image.groups.items():
        live = world.shard.image.groups[group_id]
        assert (group.generation, group.protocol_name, group.leader_id) == (
            live.generation,
            live.protocol_name,
            live.leader_id,
        )
        assert {name: member.assignment for name, member in group.members.items()} == {
            name: member.assignment for name, member in live.members.items()
        }


def test_a_heartbeat_upgrades_a_group_and_its_members_join_again() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        batches = len(world.partition.log.batches)
        change = beat(world, "C", 0)
        assert change.assigned == {}
        assert len(world.partition.log.batches) == batches + 1, "the end of one form and the other are one batch"
        assert "g" not in world.shard.image.groups
        await check_replay(world)
        assert world.shard.heartbeat("g", 1, "A", None) is ErrorCode.REBALANCE_IN_PROGRESS
        assert world.shard.heartbeat("g", 2, "A", None) is ErrorCode.ILLEGAL_GENERATION
        joined = join(world, "A", owned=[0, 1, 2]).result()
        assert (joined.error_code, joined.generation_id, joined.leader, joined.members) == (0, 1, "", [])
        assert (joined.protocol_type, joined.protocol_name, joined.member_id) == ("consumer", "range", "A")
        kept = has(sync(world, "A", 1))
        assert len(kept) == 2
        assert join(world, "A", owned=kept).result().generation_id == 2
        assert has(sync(world, "A", 2)) == kept
        assert world.shard.heartbeat("g", 2, "A", None) is ErrorCode.NONE
        taken = beat(world, "C", 2).assigned
        assert taken is not None
        assert sorted(taken[b"t" * 16]) == [index for index in (0, 1, 2) if index not in kept]
        await check_replay(world)

    play(scenario)


def test_members_that_wait_in_a_classic_group_are_told_to_join_again() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        joins = join(world, "A", owned=[0]), join(world, new_member_id="D")
        assert not any(joining.done() for joining in joins), "B has not joined again"
        beat(world, "C", 0)
        assert [code(joining) for joining in joins] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
        assert consumers(world).members.keys() == {"A", "B", "C", "D"}
        world.advance(9_000)
        assert consumers(world).members.keys() == {"A", "B", "C", "D"}, "no timer of the classic group runs"
        await check_replay(world)

    play(scenario)


def test_a_sync_that_waits_in_a_classic_group_is_told_to_join_again() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        joins = join(world, "A", owned=[0]), join(world, "B", owned=[3])
        assert [joining.result().generation_id for joining in joins] == [2, 2]
        syncing = sync(world, "B", 2)
        beat(world, "C", 0)
        assert code(syncing) is ErrorCode.REBALANCE_IN_PROGRESS
        assert world.shard.heartbeat("g", 2, "B", None) is ErrorCode.REBALANCE_IN_PROGRESS

    play(scenario)


def test_members_of_a_first_rebalance_are_assigned_partitions_when_a_member_without_topics_upgrades_it() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        waiting = join(world, new_member_id="A")
        beat(world, "C", 0, topics=())
        assert code(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
        joined = join(world, "A").result()
        assert has(sync(world, "A", joined.generation_id)) == list(range(PARTITIONS))

    play(scenario)


def test_an_upgrade_that_cannot_be_written_changes_nothing() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        group = stable(world)
        world.partition.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        assert refusal(beat, world, "C", 0) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.partition.refuses = None
        assert world.shard.image.groups == {"g": group}
        assert world.shard.consumers.get("g") is None
        assert world.shard.heartbeat("g", 1, "A", None) is ErrorCode.NONE

    play(scenario)


def test_an_upgrade_answers_when_it_is_committed() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        beat(world, "C", 0)
        world.partition.holds = True
        joining = join(world, "A", owned=[0, 1, 2])
        syncing = sync(world, "A", 1)
        assert not joining.done()
        assert not syncing.done()
        await world.partition.commit()
        await world.partition.commit()
        assert (code(joining), code(syncing)) == (ErrorCode.NONE, ErrorCode.NONE)

    play(scenario)


def test_a_new_coordinator_goes_on_with_a_mixed_group() -> None:
    async def scenario() -> None:
        world, successor = world_with_topic(), world_with_topic()
        stable(world)
        beat(world, "C", 0)
        successor.shard.image.consumer_groups.update((await reloaded(world)).consumer_groups)
        list(successor.shard.expect_members())
        assert successor.shard.heartbeat("g", 1, "A", None) is ErrorCode.REBALANCE_IN_PROGRESS
        successor.advance(9_000)
        assert consumers(successor).members.keys() == {"A", "B", "C"}
        successor.advance(1_500)
        assert consumers(successor).members.keys() == {"C"}, "classic members have their own sessions"

    play(scenario)


@pytest.mark.parametrize("ends", ["leaves", "expires"])
def test_the_end_of_the_last_new_member_makes_a_classic_group_that_rebalances(ends: str) -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        beat(world, "C", 0)
        for name, owned in (("A", [0, 1, 2]), ("B", [3, 4, 5])):
            join(world, name, owned=owned, session_timeout_ms=60_000)
            kept = has(sync(world, name, 1)) if consumers(world).members[name].epoch == 1 else owned
            join(world, name, owned=kept, session_timeout_ms=60_000)
            sync(world, name, 2)
        epoch = consumers(world).epoch
        if ends == "leaves":
            beat(world, "C", -1)
        else:
            world.advance(46_000)
        group = world.shard.image.groups["g"]
        assert world.shard.consumers.get("g") is None
        assert (group.state, group.generation) == (GroupState.PREPARING_REBALANCE, epoch)
        await check_replay(world)
        assert world.shard.heartbeat("g", epoch, "A", None) is ErrorCode.REBALANCE_IN_PROGRESS
        first, second = join(world, "A", owned=[0]), join(world, "B", owned=[2, 3])
        assert {first.result().generation_id, second.result().generation_id} == {epoch + 1}
        assert first.result().leader == "A"
        assert [member.member_id for member in first.result().members] == ["A", "B"]
        sync(world, "A", epoch + 1, A=assignment(0, 1), B=assignment(2, 3))
        assert has(sync(world, "B", epoch + 1)) == [2, 3]
        await check_replay(world)

    play(scenario)


@pytest.mark.parametrize("ends", ["leaves", "is fenced", "is replaced"])
def test_a_group_that_does_not_fit_into_a_classic_record_stays_a_consumer_group(ends: str) -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        beat(world, "C", 0, instance_id="c")
        world.partition.log.config = LogConfig(max_message_bytes=BATCH_BYTES_MAX)
        if ends == "leaves":
            beat(world, "C", -1, instance_id="c")
        if ends == "is replaced":
            beat(world, "C", -2, instance_id="c")
            assert join(world, instance_id="c", new_member_id="D").result().error_code == 0
        names = "ABD" if ends == "is replaced" else "AB"
        kept: dict[str, list[int]] = {name: [] for name in names}
        for _ in range(50):
            world.advance(1_000)
            for name in names:
                instance = "c" if name == "D" else None
                joined = join(world, name, kept[name], instance_id=instance).result()
                kept[name] = has(sync(world, name, joined.generation_id, instance))
        assert consumers(world).members.keys() == set(names)
        assert sorted(index for indexes in kept.values() for index in indexes) == list(range(PARTITIONS))
        await check_replay(world)
        world.partition.log.config = LogConfig()
        world.shard.consumers.timers.close()
        left = world.shard.leave("g", [Departure("B")])
        assert not isinstance(left, list)
        assert await left == [ErrorCode.NONE]
        assert world.shard.image.groups["g"].members.keys() == set(names) - {"B"}, "it fits by now"

    play(scenario)


def test_classic_members_leave_a_consumer_group() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        beat(world, "C", 0)
        epoch = consumers(world).epoch
        left = world.shard.leave("g", [Departure("A"), Departure("X"), Departure("A"), Departure("B")])
        assert not isinstance(left, list)
        assert await left == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE, ErrorCode.NONE]
        assert ([*consumers(world).members], consumers(world).epoch) == (["C"], epoch + 1)
        assert [name for _, name in world.shard.consumers.timers.running["g"]] == ["C"]
        await check_replay(world)

    play(scenario)


@pytest.mark.parametrize(
    ("steps", "after_ms"),
    [("", 10_000), ("heartbeats", 31_000), ("joins", 10_000), ("joins heartbeats", 30_000)],
    ids=["no heartbeat", "no join", "no heartbeat after a join", "no sync"],
)
def test_a_classic_member_that_does_not_go_on_is_fenced(steps: str, after_ms: int) -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        beat(world, "C", 0)
        if "joins" in steps:
            join(world, "A", owned=[])
        for waited in range(0, after_ms, 1_000):
            assert "A" in consumers(world).members, f"after {waited} ms"
            world.advance(1_000)
            if "heartbeats" in steps and "A" in consumers(world).members:
                world.shard.heartbeat("g", consumers(world).members["A"].epoch, "A", None)
            beat(world, "C", consumers(world).members["C"].epoch)
        world.advance(100)
        assert "A" not in consumers(world).members

    play(scenario)


@pytest.mark.parametrize("steps", ["join", "sync"])
def test_a_classic_member_is_not_fenced_that_goes_on_before_its_end_has_its_turn(
    steps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        beat(world, "C", 0)
        if steps == "sync":
            join(world, "A", owned=[0, 1, 2])
        for step in range(15):  # A has 30 s for its JoinGroup, or its SyncGroup
            world.shard.heartbeat("g", 1, "B", None)
            if steps == "join" or step > 1:  # which would ask A for another JoinGroup
                world.shard.heartbeat("g", 1, "A", None)
            beat(world, "C", 2)
            world.advance(1_990)
        held = Held(monkeypatch)
        world.shard.members.departures_max = 0
        gone = asyncio.ensure_future(world.shard.leave("g", [Departure("B")]))  # type: ignore[arg-type]
        await held.began.wait()
        answer = join(world, "A", owned=[0, 1, 2]) if steps == "join" else None
        world.shard.heartbeat("g", 1, "A", None)
        world.advance(500)
        if answer is None:
            answer = sync(world, "A", 1)
        held.may_go_on.set()
        assert await gone == [ErrorCode.NONE]
        assert (await answer).error_code == 0
        assert await world.shard.leave("g", [Departure("X")]) == [ErrorCode.UNKNOWN_MEMBER_ID]  # type: ignore[misc]
        assert consumers(world).members.keys() == {"A", "C"}

    play(scenario)


def test_a_client_without_an_id_is_given_one() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        beat(world, "C", 0)
        answer = join(world, needs_known_id=True, new_member_id="D").result()
        assert (answer.error_code, answer.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "D")
        assert "D" not in consumers(world).members
        assert join(world, "D").result().error_code == 0
        refused = join(world, "D", session_timeout_ms=1).result()
        assert (refused.error_code, refused.member_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, "D")

    play(scenario)


class Held:
    """Commands wait, in their thread, until the test lets them go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_go_on = threading.Event()
        self.began = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._work_out: Any = group_commands.work_out
        monkeypatch.setattr(group_commands, "work_out", self.work_out)

    def work_out(self, *arguments: Any) -> Any:
        self._loop.call_soon_threadsafe(self.began.set)
        assert self.may_go_on.wait(30), "the loop was held, or the test forgot it"
        return self._work_out(*arguments)


def upgrading(world: World, monkeypatch: pytest.MonkeyPatch) -> "asyncio.Future[Any]":
    monkeypatch.setattr(classic_snapshot, "AT_ONCE_MEMBERS_MAX", 1)
    fields: dict[str, Any] = {"rebalance_timeout_ms": 20_000, "topics": ("t",), "owned": {}}
    heard = world.shard.consumers.heartbeat(Heartbeat("g", "C", 0, "client", "/h", **fields), SETTINGS)
    assert not isinstance(heard, tuple), "a thread reads a large group"
    return asyncio.ensure_future(heard)


def test_a_group_that_changes_while_it_is_upgraded_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        held = Held(monkeypatch)
        heard = upgrading(world, monkeypatch)
        await held.began.wait()
        assert world.shard.leave("g", [Departure("B")]) == [ErrorCode.NONE]
        held.may_go_on.set()
        with pytest.raises(BrokerError) as refused:
            await heard
        assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert world.shard.image.groups["g"].members.keys() == {"A"}
        assert world.shard.consumers.get("g") is None
        beat(world, "C", 0)
        assert consumers(world).members.keys() == {"A", "C"}, "it comes again"

    play(scenario)


def test_a_large_group_is_upgraded_by_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        held = Held(monkeypatch)
        heard = upgrading(world, monkeypatch)
        await held.began.wait()
        assert world.shard.heartbeat("g", 1, "A", None) is ErrorCode.NONE, "its members are served meanwhile"
        held.may_go_on.set()
        await heard
        assert consumers(world).members.keys() == {"A", "B", "C"}

    play(scenario)


def test_what_waits_for_its_turn_goes_to_the_classic_group_that_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        beat(world, "C", 0)
        held = Held(monkeypatch)
        world.shard.members.departures_max = 0
        gone = asyncio.ensure_future(world.shard.leave("g", [Departure("C")]))  # type: ignore[arg-type]
        await held.began.wait()
        joining = join(world, "A", owned=[0, 1])
        leaving = asyncio.ensure_future(world.shard.leave("g", [Departure("B")]))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert not joining.done()
        held.may_go_on.set()
        assert await gone == [ErrorCode.NONE]
        assert await leaving == [ErrorCode.NONE]
        assert (await joining).leader == "A"
        assert world.shard.image.groups["g"].members.keys() == {"A"}

    play(scenario)


def test_a_join_whose_protocols_are_large_together_is_worked_out_by_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        beat(world, "C", 0)
        protocols = (("range", subscription()), ("x", bytes(3_000)))
        joining = join(world, "A", protocols=protocols)
        assert not joining.done()
        assert (await joining).error_code == 0
        held = Held(monkeypatch)
        world.partition.log.config = LogConfig(max_message_bytes=2_999)
        assert code(join(world, "A", protocols=protocols)) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert not held.began.is_set(), "no record is made that the log would refuse"

    play(scenario)


def test_a_large_assignment_is_told_by_a_thread() -> None:
    async def scenario() -> None:
        world = world_with_topic()
        stable(world)
        beat(world, "C", 0)
        world.shard.members.partitions_max = 0
        join(world, "A", owned=[0, 1, 2])
        syncing = sync(world, "A", 1)
        assert not syncing.done()
        await syncing
        assert len(has(syncing)) == 2

    play(scenario)


def adopted(world: World, count: int) -> list[str]:
    """A classic group with so many members, each of which has one partition."""
    group = ClassicGroup("g", state=GroupState.STABLE, generation=3, protocol_type="consumer", protocol_name="range")
    for index in range(count):
        world.happens(PartitionRecord(PARTITIONS + index, b"t" * 16))
        protocols = (("range", subscription()),)
        member = Member(f"m{index:03}", None, "client", "/h", 45_000, 60_000, protocols, assignment(PARTITIONS + index))
        group.add(member)
    world.shard.classics.adopt(group, rebalances=False)
    return list(group.members)


def test_the_sessions_of_a_group_with_many_members_are_taken_over_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (classic_groups, consumer_groups):
        monkeypatch.setattr(module, "SESSION_COST", COST_PER_YIELD)

    async def scenario() -> None:
        world = world_with_topic()
        names = adopted(world, 3 * YIELDS_PER_SLICE_MAX)
        watched = world.shard.classics.running["g"]
        assert len(watched) == YIELDS_PER_SLICE_MAX
        await until(lambda: len(watched) == len(names))
        joins = Heartbeat("g", "C", 0, "client", "/h", rebalance_timeout_ms=20_000, topics=("t",), owned={})
        heard = world.shard.consumers.heartbeat(joins, SETTINGS)
        assert not isinstance(heard, tuple), "a thread reads a group of that size"
        await heard
        running = world.shard.consumers.timers.running["g"]
        assert len(running) == YIELDS_PER_SLICE_MAX + 1, "C was heard of"
        leaving = world.shard.leave("g", [Departure(names[-1])])
        await until(lambda: len(running) >= len(names))
        assert not isinstance(leaving, list)
        await leaving
        assert {name for _, name in running} == {"C", *names[:-1]}

    play(scenario)
