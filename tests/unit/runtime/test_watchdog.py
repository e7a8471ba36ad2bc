"""Callbacks that hold the loop are counted and named, on asyncio's loop and on uvloop's. Time is the test's."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from kavka_broker.loop.timers import Timers
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.runtime.event_loop import new_event_loop
from kavka_broker.runtime.loop_use import LoopUse
from kavka_broker.runtime.metrics import loop_samples
from kavka_broker.runtime.watchdog import (
    HELD_SECONDS,
    NAMES_MAX,
    OTHER,
    TAKE_CALLBACK,
    TAKE_CALLBACK_SECOND,
    TAKE_FACTORY,
    Watchdog,
)


class Time:
    """Goes on only when a callback says that it takes time."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def hold(self, seconds: float = 2 * HELD_SECONDS) -> None:
        self.now += seconds


@pytest.fixture(params=["asyncio", "uvloop"])
def loop_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def watching(watchdog: Watchdog) -> Iterator[None]:
    watchdog.watch(asyncio.get_running_loop())
    try:
        yield
    finally:
        watchdog.unwatch()


def run_on(loop_name: str, work: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=partial(new_event_loop, loop_name)) as runner:
        runner.run(work)


def held_by(loop_name: str, scenario: Callable[[Time], Awaitable[None]]) -> dict[str, tuple[int, float]]:
    time = Time()
    watchdog = Watchdog(time)

    async def run() -> None:
        await scenario(time)

    async def watched() -> None:
        with watching(watchdog):
            await asyncio.create_task(run())

    run_on(loop_name, watched())
    return watchdog.held


def test_nobody_who_lets_the_others_go_on(loop_name: str) -> None:
    async def scenario(time: Time) -> None:
        for _ in range(10):
            time.hold(0.9 * HELD_SECONDS)
            await asyncio.sleep(0)

    assert held_by(loop_name, scenario) == {}


def test_a_task_a_function_and_a_timer_by_their_names(loop_name: str) -> None:
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

    held = held_by(loop_name, scenario)
    names = {name.rpartition("<locals>.")[2]: held[name] for name in held}
    assert {name: count for name, (count, _) in names.items()} == {"Time.hold": 2, "too_long": 1, "run": 1}
    assert names["Time.hold"][1] == pytest.approx(5 * HELD_SECONDS)


def test_a_connection_with_what_it_served(loop_name: str) -> None:
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

    assert [name.rpartition(".")[2] for name in held_by(loop_name, scenario)] == ["Serving Metadata"]


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


def test_what_is_called_within_a_callback_is_counted_once(loop_name: str) -> None:
    class Within(asyncio.Protocol):
        def __init__(self, time: Time) -> None:
            self._time = time

        def data_received(self, data: bytes) -> None:
            self.eof_received()  # which the loop calls too, and which is watched by itself

        def eof_received(self) -> None:
            self._time.hold()

    async def scenario(time: Time) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Within(time), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        writer.write(b"x")
        async with asyncio.timeout(60):
            while not time.now:
                await asyncio.sleep(0)
        server.close()
        writer.transport.abort()

    held = held_by(loop_name, scenario)
    assert [(name.rpartition(".")[2], count) for name, (count, _) in held.items()] == [("Within", 1)]


def test_a_call_from_a_thread_and_a_reader_are_watched(loop_name: str) -> None:
    async def scenario(time: Time) -> None:
        loop, ours, theirs = asyncio.get_running_loop(), *socket.socketpair()
        told, read = asyncio.Event(), asyncio.Event()

        def tell() -> None:
            time.hold()
            told.set()

        def take() -> None:
            ours.recv(1)
            time.hold()
            read.set()

        with ours, theirs:
            ours.setblocking(False)
            loop.add_reader(ours, take)
            theirs.send(b"x")
            await asyncio.to_thread(loop.call_soon_threadsafe, tell)
            await told.wait()
            await read.wait()
            loop.remove_reader(ours)

    held = held_by(loop_name, scenario)
    assert {name.rpartition(".")[2]: count for name, (count, _) in held.items()} == {"tell": 1, "take": 1}


def test_an_error_of_a_callback_reaches_the_handler_and_the_callback_counts(loop_name: str) -> None:
    failures: list[object] = []

    async def scenario(time: Time) -> None:
        def broken() -> None:
            time.hold()
            raise LookupError

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(type(context["exception"])))
        loop.call_soon(broken)
        await asyncio.sleep(0)

    held = held_by(loop_name, scenario)
    assert failures == [LookupError]
    assert [name.rpartition(".")[2] for name in held] == ["broken"]


def test_it_goes_away_without_a_trace(loop_name: str) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()

        def methods() -> list[object]:
            names = (*TAKE_CALLBACK, *TAKE_CALLBACK_SECOND, *TAKE_FACTORY)
            return [
                asyncio.events.Handle._run,
                asyncio.Protocol.connection_made,
                *(getattr(loop, name) for name in names),
            ]

        before = methods()
        with watching(Watchdog()):
            server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
            transport, _ = await loop.create_connection(asyncio.Protocol, *server.sockets[0].getsockname())
            assert methods() != before
            transport.abort()
            server.close()
        assert methods() == before

    run_on(loop_name, scenario())
