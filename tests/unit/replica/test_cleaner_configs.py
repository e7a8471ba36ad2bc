"""The log cleaner's configs, which may change while it runs: threads, memory, rate. In simulated time."""

import errno
from collections.abc import Awaitable, Callable

import pytest

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.replica.hosting.log_cleaner import LogCleaner
from kavka_broker.storage.cleaning.run import BYTES_PER_SLICE
from kavka_broker.storage.log import Log
from tests.sim.loop import SimLoop
from tests.support.sim_disk import DiskError
from tests.support.waiting import pass_seconds, play_simulated, until
from tests.unit.replica.test_log_cleaner import SETTINGS
from tests.unit.storage.cleaning import COMPACTED, put, roll
from tests.unit.storage.support import NOW_MS, values
from tests.unit.storage.test_log_manager import ID, formatted, start

DIRECTORIES = ("/data", "/more")
LOGS = 4
RECORDS = 40
MEBIBYTE = 1 << 20


class SimulatedClock:
    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return NOW_MS + self._loop.milliseconds()

    def monotonic_ms(self) -> float:
        return self._loop.time() * 1000


class World:
    """A cleaner over logs of one key each, in two directories, with configs that change."""

    def __init__(self, loop: SimLoop, slice_bytes: int = BYTES_PER_SLICE, **changes: str) -> None:
        self.loop = loop
        self.disk = formatted(*DIRECTORIES)
        self.manager = start(self.disk, *DIRECTORIES)
        self.logs = [self.log(f"log{number}") for number in range(LOGS)]
        self.crashes: list[BaseException] = []
        self.settings = dict(SETTINGS)
        self.alter(**{"log_cleaner_backoff_ms": "100", **changes})
        self.cleaner = LogCleaner(
            self.manager,
            SimulatedClock(loop),
            config=lambda: self.config,
            stable_offset_of=lambda one: one.log_end_offset,
            crash=self.crashes.append,
            slice_bytes=slice_bytes,
        )

    def alter(self, **changes: str) -> None:
        self.settings |= {name.replace("_", "."): value for name, value in changes.items()}
        self.config = BrokerConfig.parse(self.settings)

    def log(self, topic: str) -> Log:
        made = self.manager.create(topic, 0, ID, COMPACTED, NOW_MS)
        for number in range(RECORDS):
            put(made, ("key", f"{number}".rjust(100)))
        roll(made)
        return made

    @property
    def cleaned(self) -> list[Log]:
        return [one for one in self.logs if one.state.cleaned_offset == RECORDS]

    @property
    def moved_bytes(self) -> int:
        return sum(one.figures.bytes_read + one.figures.bytes_written for one in self.cleaner.running.values())

    async def until(self, holds: Callable[[], object], seconds_max: float = 30) -> None:
        await until(holds, seconds_max)


def play(act: Callable[[World], Awaitable[None]], slice_bytes: int = BYTES_PER_SLICE, **changes: str) -> None:
    async def scenario(loop: SimLoop) -> None:
        world = World(loop, slice_bytes, **changes)
        world.cleaner.start()
        await act(world)
        await world.cleaner.stop()
        assert world.crashes == []
        assert not world.cleaner.running

    play_simulated(scenario)


@pytest.mark.parametrize("threads", [1, 3])
def test_as_many_logs_as_threads_are_cleaned_beside_each_other(threads: int) -> None:
    most, shares = 0, set[int]()

    async def act(world: World) -> None:
        nonlocal most

        def look() -> bool:
            nonlocal most
            most = max(most, len(world.cleaner.running))
            shares.update(one.bounds.buffer_bytes_max for one in world.cleaner.running.values())
            return len(world.cleaned) == LOGS

        await world.until(look)
        assert all(values(one) == [f"{RECORDS - 1}".rjust(100).encode()] for one in world.logs)

    size = 12 * MEBIBYTE
    play(
        act,
        200,
        log_cleaner_threads=str(threads),
        log_cleaner_dedupe_buffer_size=str(size),
        log_cleaner_io_max_bytes_per_second="100000",
    )
    assert (most, shares) == (threads, {size // threads})


def test_threads_may_come_while_it_runs() -> None:
    async def act(world: World) -> None:
        await world.until(lambda: world.loop.time() > 3)
        assert world.cleaned == []
        world.alter(log_cleaner_threads="2")
        await world.until(lambda: len(world.cleaned) == LOGS, 2)

    play(act, log_cleaner_threads="0")


def test_the_rate_is_held_by_all_threads_together() -> None:
    rate = 5_000

    async def act(world: World) -> None:
        began = world.loop.time()
        for _ in range(4):
            await pass_seconds(0.5)
            passed = world.loop.time() - began
            # What is too short to wait for may be ahead; a slice is up to a batch longer than 200 bytes.
            assert 0.6 * rate * passed <= world.moved_bytes <= rate * (passed + 0.01) + 2 * 500
        assert len(world.cleaner.running) == 2

    play(act, 200, log_cleaner_threads="2", log_cleaner_io_max_bytes_per_second=str(rate))


def test_a_rate_that_is_raised_counts_for_what_waits_already() -> None:
    async def act(world: World) -> None:
        await world.until(lambda: world.loop.time() > 5)
        assert 0 < world.moved_bytes < 1_000
        world.alter(log_cleaner_io_max_bytes_per_second="1e9")
        await world.until(lambda: len(world.cleaned) == LOGS, 3)

    play(act, 200, log_cleaner_io_max_bytes_per_second="1")


def test_a_backoff_that_is_cut_is_not_waited_for() -> None:
    async def act(world: World) -> None:
        await world.until(lambda: len(world.cleaned) == LOGS)
        put(world.logs[0], ("key", "new"))
        roll(world.logs[0])
        world.alter(log_cleaner_backoff_ms="1")
        await world.until(lambda: values(world.logs[0]) == [b"new"], 2)

    play(act, log_cleaner_backoff_ms="1000000")


def test_a_bad_directory_stops_nothing_in_the_other() -> None:
    async def act(world: World) -> None:
        await world.until(lambda: not world.manager.directories[0].is_online and len(world.cleaned) == LOGS // 2)
        assert [one.path for one in world.manager.directories if one.is_online] == ["/more"]
        good = world.cleaned
        assert all(one.directory.startswith("/more") for one in good)
        put(good[0], ("key", "new"))
        roll(good[0])
        await world.until(lambda: values(good[0]) == [b"new"])

    async def scenario(loop: SimLoop) -> None:
        world = World(loop)
        world.disk.errors = [DiskError(frozenset({"append"}), "/data", errno.EIO)]
        world.cleaner.start()
        await act(world)
        await world.cleaner.stop()

    play_simulated(scenario)


def test_a_log_that_is_not_sound_stops_nothing_else() -> None:
    async def scenario(loop: SimLoop) -> None:
        world = World(loop, log_cleaner_threads="2")
        world.disk.flip_bit(world.logs[0].segments[0].file.path, 70)
        world.cleaner.start()
        await world.until(lambda: len(world.cleaned) == LOGS - 1)
        assert world.cleaner.uncleanable == [world.logs[0]]
        await world.cleaner.stop()

    play_simulated(scenario)


def test_a_segment_is_read_with_the_buffer_that_is_given() -> None:
    seen = set[int]()

    async def act(world: World) -> None:
        def look() -> bool:
            seen.update(one.bounds.read_bytes_max for one in world.cleaner.running.values())
            return len(world.cleaned) == LOGS

        await world.until(look)

    changes = {"log_cleaner_threads": "2", "log_cleaner_io_max_bytes_per_second": "100000"}
    play(act, 200, log_cleaner_io_buffer_size="65536", **changes)
    assert seen == {16_384}
