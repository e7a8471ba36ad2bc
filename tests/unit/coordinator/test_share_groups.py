"""The shell around share groups: writes that wait or fail, time, the share coordinator, and a new group coordinator."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, cast

import pytest

from kavka_broker.coordinator.groups.classic_groups import SESSION_COST
from kavka_broker.coordinator.groups.group_commands import ShareHeard
from kavka_broker.coordinator.groups.group_loading import load
from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.coordinator.share.share_state_client import InitialState, Place, ShareStateClient
from kavka_broker.core.consumer_group.checks import Heartbeat
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.group.image import SHARE, GroupImage
from kavka_broker.core.group.join import Join
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.share_group import heartbeat as rules
from kavka_broker.core.share_group.checks import ShareHeartbeat
from kavka_broker.core.share_group.heartbeat import ShareChange
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.core.share_group.state import ShareGroup, StatePartitions
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from tests.support.waiting import until
from tests.unit.coordinator.fakes import World, commit, pacing, play

T = b"t" * 16
SETTINGS = ShareGroupSettings()


class States:
    """A share coordinator that answers when the test lets it."""

    def __init__(self) -> None:
        self.held: dict[Place, InitialState] = {}
        self.error = ErrorCode.NONE
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.calls: list[tuple[str, list[Place]]] = []

    async def _answer(self, what: str, places: Collection[Place], then: Callable[[Place], object]) -> Any:
        self.calls.append((what, sorted(places)))
        await self.may_answer.wait()
        if not self.error:
            for place in places:
                then(place)
        return dict.fromkeys(places, self.error)

    async def initialize(self, group_id: str, places: Mapping[Place, InitialState]) -> dict[Place, ErrorCode]:
        answers: dict[Place, ErrorCode] = await self._answer(
            "initialize", places, lambda place: self.held.update({place: places[place]})
        )
        return answers

    async def delete(self, group_id: str, places: Collection[Place]) -> dict[Place, ErrorCode]:
        answers: dict[Place, ErrorCode] = await self._answer("delete", places, lambda place: self.held.pop(place, None))
        return answers


def begin(**settings: Any) -> tuple[World, States]:
    world, states = World(**settings), States()
    for index in range(2):
        world.happens(PartitionRecord(index, T))
    world.shard = shard_of(world, states)
    world.shard.open()
    return world, states


def shard_of(world: World, states: States | None) -> Shard:
    return Shard(
        world.partition,
        world.removals,
        GroupSettings(),
        pacing(world.clock, world.timers),
        5_000,
        lambda: cast(ShareStateClient | None, states),
    )


def beat(world: World, name: str, epoch: int, **fields: Any) -> ShareHeard:
    if epoch == 0:
        fields = {"topics": ("t",), **fields}
    heard = world.shard.shares.heartbeat(ShareHeartbeat("g", name, epoch, "client", "/h", **fields), SETTINGS)
    assert isinstance(heard, tuple), "a small group is served at once"
    return heard


def group_of(world: World) -> ShareGroup:
    return world.shard.shares.existing("g")


def refusal(call: Any, *arguments: Any, **fields: Any) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        call(*arguments, **fields)
    return refused.value.code


async def refused(outcome: Awaitable[Any]) -> ErrorCode:
    with pytest.raises(BrokerError) as error:
        await outcome
    return error.value.code


def states_of(world: World) -> StatePartitions:
    return group_of(world).states or StatePartitions()


async def joined(world: World, name: str = "a") -> int:
    """A member with all partitions of t; returns its epoch."""
    epoch = beat(world, name, 0)[0].epoch
    await until(lambda: not states_of(world).initializing)
    return beat(world, name, epoch)[0].epoch


def test_a_member_gets_partitions_once_their_state_is_made() -> None:
    async def scenario() -> None:
        world, states = begin()
        states.may_answer.clear()
        change, _ = beat(world, "a", 0)
        assert (change.epoch, change.assigned, change.interval_ms) == (2, {}, 500)
        await until(lambda: states.calls)
        assert states.calls == [("initialize", [(T, 0), (T, 1)])]
        assert beat(world, "a", 2)[0].assigned is None
        states.may_answer.set()
        await until(lambda: T in states_of(world).initialized)
        change, _ = beat(world, "a", 2)
        assert (change.epoch, change.assigned, change.interval_ms) == (3, {T: frozenset({0, 1})}, 5_000)
        assert states.held == dict.fromkeys([(T, 0), (T, 1)], InitialState(2, -1))
        assert beat(world, "a", 3) == (ShareChange(member_id="a", epoch=3, interval_ms=5_000, is_settled=True), None)

    play(scenario)


def test_the_share_coordinator_is_asked_when_the_question_is_committed() -> None:
    async def scenario() -> None:
        world, states = begin()
        world.partition.holds = True
        _, waiting = beat(world, "a", 0)
        await asyncio.sleep(0)
        assert not states.calls
        await world.partition.commit()
        assert waiting is not None
        assert await waiting is ErrorCode.NONE
        await until(lambda: states.calls)

    play(scenario)


def test_what_the_share_coordinator_refuses_is_asked_for_again() -> None:
    async def scenario() -> None:
        world, states = begin()
        states.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        beat(world, "a", 0)
        await until(lambda: states_of(world) == StatePartitions() and states.calls)
        states.error = ErrorCode.NONE
        beat(world, "a", 2)
        await until(lambda: T in states_of(world).initialized)

    play(scenario)


def test_without_a_share_coordinator_a_member_waits() -> None:
    async def scenario() -> None:
        world, _ = begin()
        world.shard = shard_of(world, None)
        world.shard.open()
        beat(world, "a", 0)
        await until(lambda: states_of(world) == StatePartitions())
        assert beat(world, "a", 2)[0].interval_ms == 500

    play(scenario)


def test_a_silent_member_is_fenced() -> None:
    async def scenario() -> None:
        world, _ = begin()
        epoch = await joined(world)
        world.advance(40_000)
        beat(world, "b", 0)
        world.partition.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        world.advance(6_000)
        await asyncio.sleep(0)
        assert list(group_of(world).members) == ["a", "b"], "its end cannot be written"
        world.partition.refuses = None
        world.advance(1_100)
        await until(lambda: list(group_of(world).members) == ["b"])
        assert refusal(beat, world, "a", epoch) is ErrorCode.UNKNOWN_MEMBER_ID

    play(scenario)


def test_sessions_of_a_large_group_begin_a_member_a_step_once_its_log_is_read() -> None:
    async def scenario() -> None:
        world, states = begin()
        names = [f"m{number}" for number in range(40)]
        for name in names:
            beat(world, name, 0)
        successor = shard_of(world, states)
        await load(world.partition, successor.image)
        begun = len(world.timers)
        steps = successor.shares.expect_members()
        for number in range(1, len(names) + 1):
            assert next(steps) == SESSION_COST, "so that thousands of members are taken in slices"
            assert len(world.timers) == begun + number
        assert list(steps) == [1], "the group itself"
        successor.open()
        list(world.shard.close())
        world.shard = successor
        world.advance(46_000)
        await until(lambda: not group_of(world).members)

    play(scenario)


def test_a_new_coordinator_goes_on_where_the_former_one_was() -> None:
    async def scenario() -> None:
        world, states = begin()
        epoch = await joined(world)
        states.may_answer.clear()
        world.happens(PartitionRecord(2, T))
        beat(world, "a", epoch)
        await until(lambda: len(states.calls) == 2)
        before = group_of(world)
        image = GroupImage()
        await load(world.partition, image)
        assert image.share_groups == {"g": before}
        assert image.type_of(image.share_groups["g"]) == SHARE
        successor = shard_of(world, states)
        await load(world.partition, successor.image)
        list(successor.expect_members())
        successor.open()
        list(world.shard.close())
        world.shard = successor
        states.may_answer.set()
        epoch = group_of(world).members["a"].epoch
        assert beat(world, "a", epoch)[0].interval_ms == 500
        assert len(states.calls) == 2, "the former coordinator's question may still be on its way"
        world.advance(30_000)
        beat(world, "a", epoch)
        await until(lambda: not states_of(world).initializing)
        world.advance(2_000)
        assert beat(world, "a", epoch)[0].assigned == {T: frozenset({0, 1, 2})}

    play(scenario)


def test_a_closed_shard_asks_and_writes_nothing_any_more() -> None:
    async def scenario() -> None:
        world, states = begin()
        states.may_answer.clear()
        beat(world, "a", 0)
        await until(lambda: states.calls)
        written = world.partition.log.log_end_offset
        list(world.shard.close())
        states.may_answer.set()
        await asyncio.sleep(0)
        world.advance(60_000)
        await asyncio.sleep(0)
        assert world.partition.log.log_end_offset == written
        assert refusal(beat, world, "a", 0) is ErrorCode.NOT_COORDINATOR

    play(scenario)


# --- what operators ask ---------------------------------------------------------------------------------------------


def test_a_group_is_deleted_after_its_states() -> None:
    async def scenario() -> None:
        world, states = begin()
        await joined(world)
        assert await refused(world.shard.share_offsets.delete_group("g")) is ErrorCode.NON_EMPTY_GROUP
        beat(world, "a", -1)
        states.error = ErrorCode.NOT_COORDINATOR
        assert await refused(world.shard.share_offsets.delete_group("g")) is ErrorCode.NOT_COORDINATOR
        assert states_of(world) == StatePartitions(deleting={T: "t"})
        states.error = ErrorCode.NONE
        await world.shard.share_offsets.delete_group("g")
        assert states.held == {}
        assert world.shard.shares.get("g") is None
        image = GroupImage()
        await load(world.partition, image)
        assert image.share_groups == {}
        assert await refused(world.shard.share_offsets.delete_group("g")) is ErrorCode.GROUP_ID_NOT_FOUND

    play(scenario)


def test_a_member_that_comes_while_the_states_are_deleted_keeps_the_group_and_gets_new_ones() -> None:
    async def scenario() -> None:
        world, states = begin()
        await joined(world)
        beat(world, "a", -1)
        states.may_answer.clear()
        deleting = asyncio.ensure_future(world.shard.share_offsets.delete_group("g"))
        await until(lambda: states.calls[-1][0] == "delete")
        beat(world, "b", 0)
        await asyncio.sleep(0)
        assert [what for what, _ in states.calls] == ["initialize", "delete"], "one after the other"
        states.may_answer.set()
        assert await refused(deleting) is ErrorCode.NON_EMPTY_GROUP
        await until(lambda: T in states_of(world).initialized)
        assert [what for what, _ in states.calls] == ["initialize", "delete", "initialize"]
        assert set(states.held) == {(T, 0), (T, 1)}

    play(scenario)


def test_offsets_are_altered_for_a_group_that_has_yet_to_begin() -> None:
    async def scenario() -> None:
        world, states = begin()
        offsets = {(T, 0): 5, (T, 1): 0}
        assert set((await world.shard.share_offsets.alter("g", {T: "t"}, offsets)).values()) == {ErrorCode.NONE}
        assert states.held == {(T, 0): InitialState(1, 5), (T, 1): InitialState(1, 0)}
        assert group_of(world).state.value == "Empty"
        assert await world.shard.share_offsets.alter("other", {}, {}) == {}
        assert world.shard.shares.get("other") is None
        beat(world, "a", 0)
        assert await refused(world.shard.share_offsets.alter("g", {T: "t"}, offsets)) is ErrorCode.NON_EMPTY_GROUP

    play(scenario)


def test_offsets_of_topics_are_deleted() -> None:
    async def scenario() -> None:
        world, states = begin()
        await joined(world)
        beat(world, "a", -1)
        topics = [topic for topic in map(world.topics.get, "tu") if topic is not None]
        states.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await world.shard.share_offsets.delete_topics("g", topics) == {T: ErrorCode.COORDINATOR_NOT_AVAILABLE}
        states.error = ErrorCode.NONE
        assert await world.shard.share_offsets.delete_topics("g", topics) == {T: ErrorCode.NONE}
        assert (states_of(world), states.held) == (StatePartitions(), {})
        assert await world.shard.share_offsets.delete_topics("g", topics) == {}

    play(scenario)


def test_deleted_topics_are_forgotten_without_a_heartbeat() -> None:
    async def scenario() -> None:
        world, _ = begin()
        await joined(world)
        beat(world, "a", -1)
        world.delete_topic("t")
        assert list(world.shard.share_offsets.forget_deleted_topics())
        await until(lambda: states_of(world) == StatePartitions())

    play(scenario)


# --- groups of other protocols --------------------------------------------------------------------------------------


def test_a_share_group_is_no_other_group_and_no_other_is_one() -> None:
    async def scenario() -> None:
        world, _ = begin()
        beat(world, "a", 0)
        consumer = Heartbeat("g", "c", 0, rebalance_timeout_ms=1, topics=("t",), owned={})
        assert refusal(world.shard.consumers.heartbeat, consumer, ConsumerGroupSettings()) is (
            ErrorCode.GROUP_ID_NOT_FOUND
        )
        token = world.token()
        world.shard.join(
            "g", Join(token, "", None, "client", "/h", 10_000, 10_000, "consumer", (("range", b""),), "n", True, False)
        )
        answer = world.answer(token)
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert refusal(commit, world, "g", 3) is ErrorCode.GROUP_ID_NOT_FOUND
        assert refusal(world.shard.staging.check, "g", -1, "", None, []) is ErrorCode.GROUP_ID_NOT_FOUND
        assert refusal(world.shard.delete_offsets, "g", [("t", 0)]) is ErrorCode.GROUP_ID_NOT_FOUND
        assert list(world.shard.image.groups) == []
        commit(world, "simple", 1)
        other = ShareHeartbeat("simple", "a", 0, topics=("t",))
        with pytest.raises(BrokerError, match="Group simple is not a share group"):
            world.shard.shares.heartbeat(other, SETTINGS)

    play(scenario)


def test_attempts_are_remembered_of_what_is_waited_for_alone() -> None:
    async def scenario() -> None:
        world, _ = begin()
        epoch = await joined(world)
        for _ in range(3):
            world.delete_topic("t")
            epoch = beat(world, "a", epoch)[0].epoch
            world.make_topic("t")
            world.happens(PartitionRecord(0, T))
            world.advance(2_000)
            epoch = beat(world, "a", epoch)[0].epoch
            await until(lambda: T in states_of(world).initialized)
            world.advance(2_000)
            epoch = beat(world, "a", epoch, topics=("u",))[0].epoch
            epoch = beat(world, "a", epoch, topics=("t",))[0].epoch
        assert group_of(world).tried_at_ms.keys() <= {T}
        world.delete_topic("t")
        world.make_topic("v")
        world.happens(PartitionRecord(0, b"v" * 16))
        beat(world, "a", epoch, topics=("v",))
        assert group_of(world).tried_at_ms.keys() == {b"v" * 16}, "the former topic is forgotten"

    play(scenario)


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group is too large to be worked out at once."""
    monkeypatch.setattr(rules, "AT_ONCE_STEPS_MAX", 0)


@pytest.mark.usefixtures("in_threads")
def test_an_offset_that_is_committed_while_a_group_begins_makes_no_second_group() -> None:
    async def scenario() -> None:
        world, _ = begin()
        heard = world.shard.shares.heartbeat(ShareHeartbeat("g", "a", 0, topics=("t",)), SETTINGS)
        assert not isinstance(heard, tuple)
        hearing = asyncio.ensure_future(heard)
        await asyncio.sleep(0)
        commit(world, "g", 3)
        await hearing
        assert world.shard.shares.get("g") is not None
        assert "g" not in world.shard.image.groups

    play(scenario)


@pytest.mark.usefixtures("in_threads")
def test_a_large_group_is_worked_out_in_a_thread() -> None:
    async def scenario() -> None:
        world, _ = begin()
        beats = [world.shard.shares.heartbeat(ShareHeartbeat("g", name, 0, topics=("t",)), SETTINGS) for name in "abc"]
        heard = [await outcome for outcome in beats if not isinstance(outcome, tuple)]
        assert [change.member_id for change, _ in heard] == ["a", "b", "c"]
        await until(lambda: T in states_of(world).initialized)
        world.advance(46_000)
        await until(lambda: not group_of(world).members)

    play(scenario)
