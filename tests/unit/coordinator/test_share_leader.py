"""A share partition's leader whose share coordinator refuses, is late, or answers to another leader (H4)."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kavka_broker.coordinator.share import share_leader
from kavka_broker.coordinator.share.share_leader import InFlight, ShareLeader
from kavka_broker.coordinator.share.share_state_client import ReadState
from kavka_broker.core.share import share_partition
from kavka_broker.core.share.share_partition import Acknowledgement, Acquisition
from kavka_broker.core.share.share_states import WrittenState
from kavka_broker.core.share.state_batches import StateBatch
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.record import Record, build_batch
from kavka_broker.storage.log_reading import Chunk
from tests.support.waiting import until
from tests.unit.coordinator.fakes import Clock, pacing

ACCEPT, RELEASE = [1], [2]


class States:
    """A share coordinator whose answers the test gives: None where a write is taken, or its refusal."""

    def __init__(self, start_offset: int) -> None:
        self.state = ReadState(3, start_offset, [])
        self.written: list[WrittenState] = []
        self.answers: list[asyncio.Future[BrokerError | None]] = []
        self.is_patient = False

    async def read(self, group_id: str, place: tuple[bytes, int], leader_epoch: int) -> ReadState:
        del group_id, place, leader_epoch
        return self.state

    async def write(self, group_id: str, place: tuple[bytes, int], state: WrittenState) -> None:
        del group_id, place
        self.written.append(state)
        if not self.is_patient:
            return
        self.answers.append(asyncio.get_running_loop().create_future())
        if (refused := await self.answers[-1]) is not None:
            raise refused


class World:
    """A loaded share partition with ten records in one batch."""

    def __init__(self, states: States) -> None:
        self.clock = Clock()
        self.timers = Timers(self.clock, asyncio.get_running_loop())
        self.states = states
        self.lost: list[ShareLeader] = []
        records = bytes(build_batch([Record(offset, 0, None, b"v", []) for offset in range(10)]))
        log = SimpleNamespace(log_start_offset=0, log_end_offset=10)
        self.partition: Any = SimpleNamespace(
            topic_id=bytes(16),
            index=0,
            is_leader=True,
            leader_epoch=5,
            leadership=SimpleNamespace(start_offset=0),
            high_watermark=10,
            last_stable_offset=10,
            log=log,
            read=lambda *_, **__: Chunk([memoryview(records)], len(records), 10),
        )
        self.leader = ShareLeader(
            "g",
            cast(Any, self.partition),
            cast(Any, states),
            lambda: ShareGroupSettings(record_lock_duration_ms=20),  # by a clock that stands still
            pacing(self.clock, self.timers),
            self.lost.append,
        )

    def acquire(self, member: str = "a") -> list[tuple[int, int, int]]:
        limits = self.leader.limits
        wanted = Acquisition(member, 500, limits, self.clock.monotonic_ms())
        acquired = self.leader.fetch(wanted, 1 << 20, True).acquired
        return [(part.first_offset, part.last_offset, part.delivery_count) for part in acquired]

    def say(self, first: int, last: int, kinds: list[int], member: str = "a") -> "asyncio.Task[None]":
        said = [Acknowledgement(first, last, kinds)]
        return asyncio.ensure_future(self.leader.acknowledge(member, said))

    @property
    def pending(self) -> int:
        """The number of runs of which something is being written, or waits for it."""
        assert self.leader.window is not None
        return sum(run.pending is not None for run in self.leader.window.runs)

    async def asked(self, count: int = 1) -> None:
        """Wait until so many writes are under way or answered."""
        await until(lambda: len(self.states.answers) == count)


def play(scenario: Callable[[World], Awaitable[None]], start_offset: int = 0) -> None:
    async def whole() -> None:
        world = World(States(start_offset))
        await world.leader.load()
        world.states.written.clear()
        world.states.is_patient = True
        try:
            await scenario(world)
        finally:
            world.leader.close()
            world.timers.close()

    asyncio.run(whole())


async def code_of(task: "asyncio.Task[None]") -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        await task
    return refused.value.code


def test_the_beginning_of_a_group_is_written_before_it_is_served() -> None:
    async def whole() -> None:
        states = States(-1)
        world = World(states)
        await world.leader.load()
        assert states.written == [WrittenState(3, 5, 10, 0, ())]
        assert world.acquire() == []

    asyncio.run(whole())


def test_changes_that_come_meanwhile_are_written_together() -> None:
    async def scenario(world: World) -> None:
        assert world.acquire() == [(0, 9, 1)]
        first = world.say(0, 1, ACCEPT)
        await world.asked()
        others = [world.say(2, 3, ACCEPT), world.say(6, 6, RELEASE)]
        await until(lambda: world.pending == 3)
        world.states.answers[0].set_result(None)
        await first
        await world.asked(2)
        assert world.states.written[1] == WrittenState(3, 5, 4, 0, [StateBatch(6, 6, 0, 1)])
        world.states.answers[1].set_result(None)
        await asyncio.gather(*others)
        assert world.acquire("b") == [(6, 6, 2)]

    play(scenario)


def test_what_could_not_be_written_is_the_members_still() -> None:
    async def scenario(world: World) -> None:
        world.acquire()
        said = world.say(0, 4, ACCEPT)
        await world.asked()
        world.states.answers[0].set_result(BrokerError(ErrorCode.NOT_COORDINATOR))
        assert await code_of(said) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert world.acquire("b") == []
        again = world.say(0, 4, ACCEPT)
        await world.asked(2)
        world.states.answers[1].set_result(None)
        await again
        assert world.leader.window is not None
        assert world.leader.window.start_offset == 5
        assert not world.lost

    play(scenario)


@pytest.mark.parametrize("code", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH])
def test_a_leader_that_is_fenced_gives_the_share_partition_up(code: ErrorCode) -> None:
    async def scenario(world: World) -> None:
        world.acquire()
        said = world.say(0, 4, ACCEPT)
        await world.asked()
        world.states.answers[0].set_result(BrokerError(code))
        assert await code_of(said) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert world.lost == [world.leader]

    play(scenario)


def test_every_answer_is_given_when_the_leadership_ends() -> None:
    async def scenario(world: World) -> None:
        world.acquire()
        under_way = world.say(0, 1, ACCEPT)
        await world.asked()
        queued = world.say(2, 3, ACCEPT)
        await until(lambda: world.pending == 2)
        world.leader.close()
        for said in (under_way, queued):
            assert await code_of(said) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await code_of(world.say(4, 4, ACCEPT)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert len(world.timers) == 0, "no lock is timed any more"

    play(scenario)


def test_a_member_that_is_gone_before_the_answer_leaves_nothing_pending() -> None:
    async def scenario(world: World) -> None:
        world.acquire()
        said = world.say(0, 9, ACCEPT)
        await world.asked()
        said.cancel()
        world.states.answers[0].set_result(None)
        await until(lambda: world.leader.is_idle)
        assert world.leader.window is not None
        assert world.leader.window.start_offset == 10

    play(scenario)


def test_a_lock_that_ends_while_its_change_is_written_ends_after_it() -> None:
    async def scenario(world: World) -> None:
        world.acquire()
        said = world.say(0, 9, ACCEPT)
        await world.asked()
        world.clock.ms += 60_000
        world.states.answers[0].set_result(BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        assert await code_of(said) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.clock.ms += 100  # timers end a tick late
        await world.asked(2)
        assert world.states.written[1].batches == [StateBatch(0, 9, 0, 1)], "the lock had ended"
        assert world.acquire("b") == [(0, 9, 2)]

    play(scenario)


def test_writes_name_few_ranges_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_leader, "BATCHES_PER_WRITE_MAX", 2)

    async def scenario(world: World) -> None:
        world.acquire()
        said = world.say(0, 9, [2, 1] * 5)
        for number in range(1, 6):
            await world.asked(number)
            world.states.answers[-1].set_result(None)
        await said
        assert [len(write.batches) for write in world.states.written] == [2] * 5
        assert world.acquire("b") == [(offset, offset, 2) for offset in range(0, 10, 2)]

    play(scenario)


def test_a_change_with_many_runs_is_written_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_leader, "RUNS_PER_WRITE", 3)

    async def scenario(world: World) -> None:
        world.acquire()
        first = world.say(0, 0, ACCEPT)
        await world.asked()
        others = [world.say(offset, offset + 1, ACCEPT) for offset in range(2, 10, 2)]
        await until(lambda: world.pending == 5)
        world.states.answers[0].set_result(None)
        await first
        await world.asked(2)
        assert len(world.states.written[1].batches) == 3
        world.states.answers[1].set_result(None)
        await world.asked(3)
        assert len(world.states.written[2].batches) == 1
        world.states.answers[2].set_result(None)
        await asyncio.gather(*others)

    play(scenario)


def test_few_locks_end_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_partition, "EXPIRED_PER_STEP_MAX", 3)

    async def scenario(world: World) -> None:
        world.states.is_patient = False
        world.acquire()
        await world.say(0, 9, [4, 2] * 5)  # so that each is a run of its own
        ends: list[int] = []
        window = world.leader.window
        assert window is not None
        expire = window.expire

        def counted(*arguments: Any) -> list[StateBatch]:
            ended = expire(*arguments)
            ends.append(len(ended))
            return ended

        monkeypatch.setattr(window, "expire", counted)

        def passes() -> bool:
            world.clock.ms += 100
            return sum(ends) == 5

        await until(passes)
        assert [count for count in ends if count] == [3, 2]

    play(scenario)


def test_records_in_flight_are_bounded_over_all_share_partitions() -> None:
    async def scenario(world: World) -> None:
        world.states.is_patient = False
        other = World(world.states)
        await other.leader.load()
        world.leader.in_flight = other.leader.in_flight = InFlight(records_max=10, reserved=2)
        assert world.acquire() == [(0, 9, 1)]
        assert other.acquire() == [(0, 1, 1)], "each may have a few"
        assert other.acquire() == []
        await world.say(0, 4, ACCEPT)
        assert other.acquire() == [(2, 4, 1)], "five are done, and two are beyond the bound"
        world.leader.close()
        other.leader.close()
        assert world.leader.in_flight.records == 0
        other.timers.close()

    play(scenario)


def test_a_state_of_many_ranges_is_taken_over_in_slices() -> None:
    async def whole() -> None:
        states = States(0)
        states.state = ReadState(3, 0, [StateBatch(offset, offset, 2 * (offset % 2), 1) for offset in range(10_000)])
        world = World(states)
        world.partition.log.log_end_offset = 10_000
        turns, loading = 0, asyncio.ensure_future(world.leader.load())
        while not loading.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 4
        assert world.leader.window is not None
        assert len(world.leader.window.runs) == 10_000
        world.leader.close()
        world.timers.close()

    asyncio.run(whole())


def test_a_gap_of_the_log_leaves_other_share_partitions_their_room() -> None:
    """A record before five million offsets that were compacted away is two runs, and no five million records."""

    async def scenario(world: World) -> None:
        world.states.is_patient = False
        world.acquire()
        window = world.leader.window
        assert window is not None
        window._archive(10, 5_000_000)
        world.leader.in_flight.count(world.leader)
        assert window.in_flight > 5_000_000
        assert world.leader.in_flight.records == world.leader.settings().partition_max_record_locks

    play(scenario)
