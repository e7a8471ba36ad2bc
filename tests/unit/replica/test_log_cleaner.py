"""The log cleaner, as it runs beside its broker: what it chooses, what it waits for, what it leaves alone."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.replica.hosting.log_cleaner import COMPACTED_PER_TURN, SEGMENTS_PER_TURN, Cleanable, LogCleaner
from kavka_broker.storage.cleaning.run import BYTES_PER_SLICE
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_manager import LogManager
from tests.support.cluster import StillClock
from tests.support.sim_disk import DiskError, SimDisk
from tests.unit.storage.cleaning import COMPACTED, put, roll
from tests.unit.storage.support import NOW_MS, SMALL, values
from tests.unit.storage.test_log_manager import ID, formatted, start

SETTINGS = {"node.id": "1", "process.roles": "broker", "log.dirs": "/data", "controller.listener.names": "C"}


def config_of(**changes: str) -> BrokerConfig:
    given = {name.replace("_", "."): value for name, value in changes.items()}
    return BrokerConfig.parse({**SETTINGS, **given})


class World:
    """A cleaner over two logs of one key each; the second one has more that is dirty."""

    def __init__(
        self, slice_bytes: int = BYTES_PER_SLICE, segments_per_turn: int = SEGMENTS_PER_TURN, **changes: str
    ) -> None:
        self.disk: SimDisk = formatted()
        self.logs: LogManager = start(self.disk)
        self.stable: dict[Log, int | None] = {}
        self.clock = StillClock(NOW_MS)
        self.crashes: list[BaseException] = []
        self.less, self.more = (self.log(topic, rounds) for topic, rounds in (("less", 2), ("more", 4)))
        self.cleaner = LogCleaner(
            self.logs,
            self.clock,
            config=lambda: config_of(**changes),
            stable_offset_of=lambda one: self.stable.get(one, one.log_end_offset),
            crash=self.crashes.append,
            slice_bytes=slice_bytes,
            segments_per_turn=segments_per_turn,
        )

    def log(self, topic: str, rounds: int) -> Log:
        made = self.logs.create(topic, 0, ID, replace(COMPACTED, min_cleanable_dirty_ratio=0.1), NOW_MS)
        put(made, ("first", "1"))
        roll(made)
        made.state.cleaned_offset = 1
        for number in range(rounds):
            put(made, ("a", f"{number}"))
        roll(made)
        return made


def play(
    act: Callable[[World], Awaitable[None]],
    slice_bytes: int = BYTES_PER_SLICE,
    segments_per_turn: int = SEGMENTS_PER_TURN,
    **changes: str,
) -> World:
    async def run() -> World:
        world = World(slice_bytes, segments_per_turn, **changes)
        await act(world)
        return world

    return asyncio.run(run())


def test_the_dirtiest_goes_first_and_then_the_other() -> None:
    async def act(world: World) -> None:
        assert await world.cleaner.clean_next()
        assert (values(world.more), len(values(world.less))) == ([b"1", b"3"], 3)
        assert await world.cleaner.clean_next()
        assert values(world.less) == [b"1", b"1"]
        assert not await world.cleaner.clean_next()

    world = play(act)
    figures = world.cleaner.figures
    assert (figures.runs_total, figures.dirty_ratio_max) == (2, 0.0)
    assert 0 < figures.bytes_written_total < figures.bytes_read_total
    assert world.disk.read_file("/data/cleaner-offset-checkpoint") == b"0\n2\nless 0 3\nmore 0 5\n"


def test_a_start_goes_on_where_the_checkpoint_says() -> None:
    async def act(world: World) -> None:
        await world.cleaner.clean_next()

    world = play(act)
    world.logs.close()
    again = start(world.disk, log_config=COMPACTED)
    found = again.get("more", 0), again.get("less", 0)
    assert [one and one.state.cleaned_offset for one in found] == [5, 1]


def test_what_is_cut_off_after_the_last_slice_is_not_clean() -> None:
    """Else a tombstone among what comes in its place would go before the value that it hides."""

    async def act(world: World) -> None:
        note_cleaned = world.logs.note_cleaned

        def after_a_cut(partition_log: Log) -> None:
            partition_log.truncate_to(2)  # the loop's, while the thread was yet to begin
            note_cleaned(partition_log)

        world.logs.note_cleaned = after_a_cut  # type: ignore[method-assign]
        assert await world.cleaner.clean_next()
        assert world.more.state.cleaned_offset == world.more.log_end_offset < 5

    play(act)


def test_a_cut_below_what_was_cleaned_outlives_a_crash() -> None:
    async def act(world: World) -> None:
        await world.cleaner.clean_next()
        world.more.truncate_to(2)  # in a gap: the log ends with the batch below it
        assert world.disk.read_file("/data/cleaner-offset-checkpoint") == b"0\n2\nless 0 1\nmore 0 1\n"

    play(act)


def test_a_log_that_cannot_be_read_is_named_and_left_alone() -> None:
    async def act(world: World) -> None:
        world.disk.flip_bit(world.more.segments[0].file.path, 70)
        before = world.disk.read_file(world.more.segments[0].file.path)
        assert not await world.cleaner.clean_next()
        assert world.cleaner.uncleanable == [world.more]
        assert world.disk.read_file(world.more.segments[0].file.path) == before
        assert await world.cleaner.clean_next()
        assert values(world.less) == [b"1", b"1"]
        world.logs.delete("more", 0)
        assert world.cleaner.uncleanable == []

    assert play(act).logs.online


@pytest.mark.parametrize(("number", "is_online"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_a_full_disk_is_tried_again_and_one_that_fails_is_given_up(number: int, is_online: bool) -> None:
    async def act(world: World) -> None:
        world.disk.errors = [DiskError(frozenset({"append"}), "/data", number, times=1)]
        assert not await world.cleaner.clean_next()
        assert await world.cleaner.clean_next() == is_online

    world = play(act)
    assert bool(world.logs.online) == is_online
    assert not [name for name in world.disk.names("/data/more-0") if name.endswith(".cleaned")]


def test_what_is_not_in_service_is_not_touched() -> None:
    async def act(world: World) -> None:
        world.stable = {world.more: None, world.less: 1}
        assert not await world.cleaner.clean_next()
        assert (len(values(world.more)), len(values(world.less))) == (5, 3)

    play(act)


def test_a_cleaning_ends_with_the_service_of_its_log() -> None:
    async def act(world: World) -> None:
        cleaning = asyncio.create_task(world.cleaner.clean_next())
        while not world.cleaner.running and not cleaning.done():
            await asyncio.sleep(0)
        world.stable = {world.more: None}
        assert not await cleaning
        assert len(values(world.more)) == 5

    play(act)


def test_a_rate_holds_it_back_and_a_stop_does_not_wait_for_it() -> None:
    async def act(world: World) -> None:
        world.cleaner.start()
        async with asyncio.timeout(60):
            while not world.cleaner.progress:
                await asyncio.sleep(0)
        await asyncio.wait_for(world.cleaner.stop(), 60)
        assert world.cleaner.figures.runs_total == 0
        assert len(values(world.more)) == 5

    assert play(act, slice_bytes=1, log_cleaner_io_max_bytes_per_second="0.001").crashes == []


@pytest.mark.parametrize("changes", [{"log_cleaner_enable": "false"}, {"log_cleaner_threads": "0"}])
def test_it_can_be_told_not_to(changes: dict[str, str]) -> None:
    async def act(world: World) -> None:
        world.cleaner.start()
        await asyncio.sleep(0)
        await world.cleaner.stop()
        assert world.cleaner.figures.runs_total == 0

    play(act, BYTES_PER_SLICE, SEGMENTS_PER_TURN, **changes)


def test_a_log_of_many_segments_is_not_looked_at_in_one_piece() -> None:
    """And one that is cut meanwhile is not cleaned by what was seen of it before."""

    async def act(world: World) -> None:
        cleaning = asyncio.create_task(world.cleaner.clean_next())
        for _ in range(5):  # it has seen one of the two logs, and some of the other
            await asyncio.sleep(0)
        assert not world.cleaner.running
        world.more.truncate_to(1)
        world.less.truncate_to(1)
        put(world.more, *((f"{number}", "") for number in range(9)))
        roll(world.more)
        assert not await cleaning
        assert len(values(world.more)) == 10

    play(act, segments_per_turn=1)


def test_very_many_logs_that_are_not_cleaned_are_passed_over_in_few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = 0

    async def turn(_: float) -> None:
        nonlocal turns
        turns += 1

    async def act(world: World) -> None:
        for index in range(4 * COMPACTED_PER_TURN):
            world.logs.create("plain", index, ID, SMALL, NOW_MS)
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "sleep", turn)
            assert len(await world.cleaner._look()) == 2

    play(act)
    assert turns == 0


def test_a_log_is_cleaned_when_its_oldest_dirty_record_has_waited_too_long() -> None:
    async def act(world: World) -> None:
        waits = replace(COMPACTED, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1_000)
        log = world.logs.create("waits", 0, ID, waits, NOW_MS)
        world.stable = {world.more: None, world.less: None}
        put(log, ("a", "1"))
        put(log, ("a", "2"))
        roll(log)
        for now_ms, cleans in ((NOW_MS + 1_000, False), (NOW_MS + 1_001, True)):
            world.clock.time_ms = now_ms
            assert await world.cleaner.clean_next() is cleans
        assert values(log) == [b"2"]
        assert world.cleaner.figures.overdue_ms_max == 1

    play(act)


def test_a_topic_deleted_under_its_cleaning_takes_nothing_of_the_next_one() -> None:
    ends = set()
    for turns in range(0, 60, 3):

        async def act(world: World, turns: int = turns) -> None:
            cleaning = asyncio.create_task(world.cleaner.clean_next())
            while not cleaning.done() and (world.cleaner.progress < turns / 60):
                await asyncio.sleep(0)
            world.logs.delete("more", 0)
            again = world.logs.create("more", 0, b"\7" * 16, COMPACTED, NOW_MS)
            put(again, ("a", "new"))
            ends.add(await cleaning)
            assert values(again) == [b"new"]
            assert not [name for name in world.disk.names("/data/more-0") if name.endswith((".cleaned", ".swap"))]
            assert again.state.cleaned_offset == 0
            assert world.cleaner.uncleanable == []

        assert play(act, slice_bytes=1).logs.online
    assert False in ends


def test_logs_that_cannot_be_cleaned_are_not_tried_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk refuses each; every thread keeps its place for `log.cleaner.backoff.ms`."""
    tried = list[str]()

    async def refuse(found: Cleanable) -> bool:
        tried.append(str(found.log.name))
        return False

    async def act(world: World) -> None:
        monkeypatch.setattr(world.cleaner, "_clean", refuse)
        for number in range(4):
            world.log(f"other{number}", 3)
        world.cleaner.start()
        for _ in range(200):
            await asyncio.sleep(0)
        await world.cleaner.stop()

    play(act, log_cleaner_threads="2")
    assert len(tried) == 2
