"""Timers on a loop and a clock that the test moves."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.loop.timers import SWEEP_TICKS_MIN, TICK_MS, Timer, Timers


class Handle:
    def __init__(self, when: float, callback: Callable[[], object]) -> None:
        self.when, self.callback, self.is_cancelled = when, callback, False

    def cancel(self) -> None:
        self.is_cancelled = True


class World:
    """A clock, and a loop that knows nothing but `call_at`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.handles: list[Handle] = []
        self.wakes = 0
        self.timers = Timers(self, cast(asyncio.AbstractEventLoop, self))
        self.fired: list[tuple[object, float]] = []

    def now_ms(self) -> int:
        return int(self.now)

    def monotonic_ms(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now / 1000 + 77  # the loop may count from another start

    def call_at(self, when: float, callback: Callable[[], object]) -> Handle:
        self.handles.append(Handle(when, callback))
        return self.handles[-1]

    @property
    def armed(self) -> list[Handle]:
        return [handle for handle in self.handles if not handle.is_cancelled]

    def advance(self, by_ms: float) -> None:
        end = self.now + by_ms
        while due := [handle for handle in self.armed if handle.when <= end / 1000 + 77]:
            first = min(due, key=lambda handle: handle.when)
            self.handles.remove(first)
            self.now = max(self.now, (first.when - 77) * 1000 + 1e-6)
            self.wakes += 1
            first.callback()
        self.now = max(self.now, end)

    def note(self, name: object = None) -> None:
        self.fired.append((name, self.now))


def test_fires_once_not_early_and_at_most_a_tick_late() -> None:
    world = World()
    world.timers.after(100, world.note, "a")
    world.advance(99.9)
    assert world.fired == []

    world.advance(1000)
    ((name, at),) = world.fired
    assert name == "a"
    assert 1100 <= at <= 1100 + TICK_MS + 1


def test_timers_fire_in_the_order_of_their_ends() -> None:
    world = World()
    for delay_ms in (300, 20, 100, 0):
        world.timers.after(delay_ms, world.note, delay_ms)
    world.advance(1000)
    assert [name for name, _ in world.fired] == [0, 20, 100, 300]


def test_a_cancelled_timer_never_fires_and_is_gone_at_once() -> None:
    world = World()
    timer = world.timers.after(10, world.note, "a")
    assert len(world.timers) == 1
    timer.cancel()
    timer.cancel()
    assert len(world.timers) == 0
    world.advance(100)
    assert world.fired == []


def test_cancelled_by_another_of_the_same_tick() -> None:
    world = World()
    same_tick: list[Timer] = []
    world.timers.after(10, lambda: same_tick[0].cancel())  # noqa: PLW0108 - the list is still empty
    same_tick.append(world.timers.after(10, world.note, "second"))
    world.advance(100)
    assert world.fired == []


def test_nothing_wakes_where_nothing_waits() -> None:
    world = World()
    for _ in range(1000):
        world.timers.after(500, world.note).cancel()
        world.advance(1)
    world.advance(10_000)
    assert world.armed == []
    assert world.wakes <= 3


def test_one_handle_on_the_loop_whatever_the_number_of_timers() -> None:
    world = World()
    for delay_ms in range(1000, 0, -1):
        world.timers.after(delay_ms, world.note, delay_ms)
    assert len(world.armed) == 1


def test_a_timer_set_by_a_callback_waits_for_its_own_time() -> None:
    world = World()
    world.timers.after(10, lambda: world.timers.after(0, world.note, "later"))
    world.advance(10 + TICK_MS)
    world.advance(2 * TICK_MS)
    assert [name for name, _ in world.fired] == ["later"]


def test_a_callback_that_fails_holds_up_nobody_else() -> None:
    world = World()

    def fail() -> None:
        raise RuntimeError("planted")

    world.timers.after(10, fail)
    world.timers.after(10, world.note, "same tick")
    world.timers.after(50, world.note, "later")
    with pytest.raises(RuntimeError, match="planted"):
        world.advance(100)
    world.advance(100)
    assert [name for name, _ in world.fired] == ["same tick", "later"]


def test_ticks_without_timers_are_swept() -> None:
    world = World()
    for delay_ms in range(0, 100 * SWEEP_TICKS_MIN * TICK_MS, TICK_MS):
        world.timers.after(delay_ms, world.note).cancel()
    assert len(world.timers.ticks) <= SWEEP_TICKS_MIN


def test_timers_may_be_closed_from_a_callback() -> None:
    world = World()
    world.timers.after(10, world.timers.close)
    world.timers.after(20, world.note, "never")
    world.advance(100)
    assert world.fired == []
    assert world.armed == []


@given(st.lists(st.tuples(st.floats(0, 500), st.booleans(), st.floats(0, 50)), max_size=60))
def test_every_timer_that_was_not_cancelled_fires_in_time(steps: list[tuple[float, bool, float]]) -> None:
    world = World()
    due: dict[int, float] = {}
    for name, (delay_ms, is_cancelled, advance_ms) in enumerate(steps):
        timer = world.timers.after(delay_ms, world.note, name)
        if is_cancelled:
            timer.cancel()
        else:
            due[name] = world.now + delay_ms
        world.advance(advance_ms)
    world.advance(1000)
    assert dict(world.fired).keys() == due.keys()
    for fired, at in world.fired:
        assert due[cast(int, fired)] <= at <= due[cast(int, fired)] + TICK_MS + 0.01
