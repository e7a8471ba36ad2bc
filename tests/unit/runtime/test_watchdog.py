"""Callbacks that hold the loop are counted and named. Time is the test's."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from kavka_broker.loop.timers import Timers
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.runtime.loop_use import LoopUse
from kavka_broker.runtime.metrics import loop_samples
from kavka_broker.runtime.watchdog import HELD_SECONDS, NAMES_MAX, OTHER, Watchdog


class Time:
    """Goes on only when a callback says that it takes time."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def hold(self, seconds: float = 2 * HELD_SECONDS) -> None:
        self.now += seconds


@contextmanager
def watching(watchdog: Watchdog) -> Iterator[None]:
    watchdog.watch()
    try:
        yield
    finally:
        watchdog.unwatch()


def held_by(scenario: Callable[[Time], Awaitable[None]]) -> dict[str, tuple[int, float]]:
    time = Time()
    watchdog = Watchdog(time)

    async def run() -> None:
        await scenario(time)

    with watching(watchdog):
        asyncio.run(run())
    return watchdog.held


def test_nobody_who_lets_the_others_go_on() -> None:
    async def scenario(time: Time) -> None:
        for _ in range(10):
            time.hold(0.9 * HELD_SECONDS)
            await asyncio.sleep(0)

    assert held_by(scenario) == {}


def test_a_task_a_function_and_a_timer_by_their_names() -> None:
    async def scenario(time: Time) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(time.hold)
        loop.call_soon(partial(partial(time.hold), 3 * HELD_SECONDS))
        await asyncio.sleep(0)
        timers, fired = Timers(SystemClock(), loop), asyncio.Event()

        def too_long() -> None:
            time.hold()
            fired.set()

        timers.after(0, too_long)
        await fired.wait()
        time.hold()

    held = held_by(scenario)
    names = {name.rpartition("<locals>.")[2]: held[name] for name in held}
    assert {name: count for name, (count, _) in names.items()} == {"Time.hold": 2, "too_long": 1, "run": 1}
    assert names["Time.hold"][1] == pytest.approx(5 * HELD_SECONDS)


def test_a_connection_with_what_it_served() -> None:
    class Serving(asyncio.Protocol):
        doing = ""

        def __init__(self, time: Time) -> None:
            self._time = time

        def data_received(self, data: bytes) -> None:
            self.doing = "Metadata"
            self._time.hold()

    async def scenario(time: Time) -> None:
        server = await asyncio.get_running_loop().create_server(lambda: Serving(time), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        writer.write(b"x")
        async with asyncio.timeout(60):
            while not time.now:
                await asyncio.sleep(0)
        writer.close()
        server.close()

    assert [name.rpartition(".")[2] for name in held_by(scenario)] == ["Serving Metadata"]


def test_names_are_bounded_and_the_log_is_not_flooded(caplog: pytest.LogCaptureFixture) -> None:
    time = Time()
    watchdog = Watchdog(time)
    with caplog.at_level(logging.WARNING):
        for number in range(2 * NAMES_MAX):

            def callback() -> None: ...

            callback.__qualname__ = f"callback{number}"
            watchdog.count(callback, 0.5)
    assert len(watchdog.held) == NAMES_MAX + 1
    assert watchdog.held[OTHER] == (NAMES_MAX, 0.5 * NAMES_MAX)
    assert len(caplog.records) == 1
    assert ("kavka_loop_held_total", (OTHER,), NAMES_MAX) in list(loop_samples(watchdog, LoopUse()))


def test_it_goes_away_without_a_trace() -> None:
    before = asyncio.events.Handle._run
    watchdog = Watchdog()
    with watching(watchdog):
        assert asyncio.events.Handle._run is not before
    assert asyncio.events.Handle._run is before
