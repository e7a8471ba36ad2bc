"""Threads that work for requests: clients take turns, and each pays for what was done for it."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

import pytest

from kavka_broker.loop.coroutine_time import paid
from kavka_broker.loop.request_threads import RequestThreads
from kavka_broker.loop.slices import LoopTime, Slices
from kavka_broker.loop.turns import Flow, Turns

TOOK_NS = 10_000_000


class Request:
    """A request of a client, which pays."""

    def __init__(self, flow: Flow | None, user: str = "") -> None:
        self.flow, self.queue_name = flow, (user, "")
        self.loop_ns = 0


class World:
    """One thread, in which each work takes ten milliseconds by its clock."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.slices = Slices()
        self.slices.time = LoopTime(lambda: 0, self.turns, count(step=TOOK_NS).__next__)
        self.threads = RequestThreads(self.slices, 1)
        self.done: list[str] = []

    def request(self, client_id: str) -> Request:
        return Request(self.turns.join("", client_id), client_id)

    def work(self, request: Request, name: str) -> "asyncio.Task[None]":
        """Have a thread work for the request, which waits for it in a task of its own."""
        self.slices.time.payer = request
        task = asyncio.ensure_future(paid(self._work(name), self.slices.time))
        self.slices.time.payer = None
        return task

    async def _work(self, name: str) -> None:
        await self.threads.run(self.done.append, name)


def play(scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario(World())

    asyncio.run(bounded())


def test_who_asks_for_little_does_not_wait_for_all_that_another_has_sent() -> None:
    async def scenario(world: World) -> None:
        greedy, light = world.request("greedy"), world.request("light")
        tasks = [world.work(greedy, f"greedy {number}") for number in range(4)]
        await tasks[0]
        tasks.append(world.work(light, "light"))
        await asyncio.gather(*tasks)
        # One was given the thread in the turn in which the first was through.
        assert world.done.index("light") == 2
        assert [name for name in world.done if name != "light"] == [f"greedy {number}" for number in range(4)]

    play(scenario)


def test_what_a_thread_does_is_paid_for() -> None:
    async def scenario(world: World) -> None:
        request = world.request("a")
        await asyncio.gather(world.work(request, "one"), world.work(request, "two"))
        assert request.loop_ns == 2 * TOOK_NS

    play(scenario)


def test_what_is_for_no_request_is_done_too() -> None:
    async def scenario(world: World) -> None:
        assert await world.threads.run(len, "four") == 4
        with pytest.raises(ValueError, match="none"):
            await world.threads.run(int, "none")
        assert await world.threads.run(len, "five ") == 5

    play(scenario)


def test_who_gives_up_keeps_no_place() -> None:
    async def scenario(world: World) -> None:
        request = world.request("a")
        first, second, third, fourth = (world.work(request, name) for name in ("1", "2", "3", "4"))
        await asyncio.sleep(0)
        second.cancel()  # waits for its turn
        await first  # now the third has its turn, and has not begun
        third.cancel()
        await fourth
        assert "2" not in world.done
        await world.work(request, "5")
        assert world.done[-2:] == ["4", "5"]

    play(scenario)


def test_what_was_begun_ends_though_nobody_waits_for_it() -> None:
    async def scenario(world: World) -> None:
        request = world.request("a")
        given_up = world.work(request, "begun")
        await asyncio.sleep(0)
        given_up.cancel()
        await world.work(request, "next")
        assert world.done == ["begun", "next"]
        assert request.loop_ns == 2 * TOOK_NS

    play(scenario)
