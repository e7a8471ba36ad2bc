"""A run that would not end by itself is ended, with the place where it was."""

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import pytest

from tests.sim import watchdog
from tests.sim.loop import Exhausted, SimLoop
from tests.sim.watchdog import USUAL, Bounds, watching


def play(scenario: Callable[[SimLoop], Awaitable[Any]], bounds: Bounds) -> Any:
    loop = SimLoop(1)
    asyncio.set_event_loop(loop)
    try:
        with watching(loop, bounds):
            return loop.run_until_complete(scenario(loop))
    finally:
        loop.bury()
        asyncio.set_event_loop(None)
        loop.close()


async def run_in_circles(loop: SimLoop) -> None:
    del loop
    while True:
        pass


async def run_in_circles_and_want_no_end(loop: SimLoop) -> None:
    del loop
    ends = 0
    while ends < 3:
        try:
            while True:
                pass
        except BaseException:  # noqa: BLE001 - what somebody might have written
            ends += 1
    await asyncio.sleep(1)


async def run_in_circles_in_a_thread(loop: SimLoop) -> None:
    def circle() -> None:
        while True:
            pass

    await asyncio.gather(asyncio.to_thread(circle), return_exceptions=True)
    await loop.create_future()


@pytest.mark.parametrize("circle", [run_in_circles, run_in_circles_and_want_no_end, run_in_circles_in_a_thread])
def test_a_step_without_end_is_told_with_its_place(circle: Any) -> None:
    with pytest.raises(Exhausted, match=r"(?s)one step goes on forever.*test_watchdog\.py.*circle"):
        play(circle, Bounds(tick_seconds=0.01, step_ticks_max=10))


def test_a_tick_while_a_place_is_told_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, told = SimLoop(1), traceback.format_stack
    dog = watchdog.Watchdog(loop, Bounds(step_ticks_max=0))

    def format_slowly(frame: FrameType) -> list[str]:
        dog.tick(0, sys._getframe())  # as a signal that comes in the middle of it does
        return told(frame)

    monkeypatch.setattr(traceback, "format_stack", format_slowly)
    with pytest.raises(Exhausted) as caught:
        dog.tick(0, sys._getframe())
    assert "format_slowly" not in str(caught.value)
    assert "test_a_tick_while" in str(caught.value)
    loop.close()


def test_the_place_is_where_it_was_met_first() -> None:
    loop = SimLoop(1)
    dog = watchdog.Watchdog(loop, Bounds(step_ticks_max=0))

    def go_in_circles() -> None:
        dog.tick(0, sys._getframe())

    def leave() -> None:
        dog.tick(0, sys._getframe())

    for way in (go_in_circles, leave):
        with pytest.raises(Exhausted, match=r"in go_in_circles\n"):
            way()
    loop.close()


def test_many_short_steps_are_no_long_one() -> None:
    async def scenario(loop: SimLoop) -> int:
        for _ in range(20_000):
            await asyncio.sleep(0.001)
        return loop.steps

    assert play(scenario, Bounds(tick_seconds=0.001, step_ticks_max=10_000)) > 20_000


def test_a_run_that_takes_all_memory_is_ended() -> None:
    async def take_it_all(_: SimLoop) -> None:
        taken = []
        while True:
            taken.append(bytearray(2**20))

    with pytest.raises(Exhausted, match=r"(?s)has taken \d+ MiB of memory.*in take_it_all\n"):
        play(take_it_all, Bounds(tick_seconds=0.01, memory_bytes_max=100 * 2**20))


def test_the_bounds_are_far_from_what_a_busy_machine_does() -> None:
    assert USUAL.tick_seconds * USUAL.step_ticks_max >= 15
    assert USUAL.memory_bytes_max < watchdog.ADDRESSES_BYTES_MAX
