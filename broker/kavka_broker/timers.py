"""Timers for requests that wait: cheap to set, cheaper to cancel.

A long poll sets a timer with every fetch and nearly always cancels it, so a timer must not cost a heap operation and a
callback of the loop each. Deadlines are gathered into slots of `SLOT_MS`; one callback of the loop is set, for the
earliest slot. An empty wheel sets none, so an idle broker does not wake up.

A timer is never early, and late by at most one slot and what the loop is busy with.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from math import floor
from typing import Any

from kavka_broker.seams import Clock

SLOT_MS = 8


class Timer:
    """A callback that is still to come. `cancel` may be called at any time, and more than once."""

    __slots__ = ("_arguments", "_callback", "_owner", "_slot")

    def __init__(self, owner: "Timers", slot: int, callback: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._owner: Timers | None = owner
        self._slot = slot
        self._callback = callback
        self._arguments = arguments

    @property
    def is_pending(self) -> bool:
        return self._owner is not None

    def cancel(self) -> None:
        """The callback will not be called. The timer is forgotten at once, so cancelled ones do not pile up."""
        if self._owner is not None:
            self._owner._forget(self, self._slot)  # noqa: SLF001 - the two classes are one thing
            self._owner = None

    def _fire(self) -> None:
        if self._owner is not None:
            self._owner = None
            self._callback(*self._arguments)


class Timers:
    """All timers of one loop."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = clock
        self._loop = loop
        self._slots: dict[int, dict[Timer, None]] = {}
        self._order: list[int] = []
        self._wake: asyncio.TimerHandle | None = None
        self._wake_slot = 0

    def __len__(self) -> int:
        return sum(map(len, self._slots.values()))

    def after(self, delay_ms: float, callback: Callable[..., None], *arguments: Any) -> Timer:
        """Call `callback(*arguments)` once, `delay_ms` from now or up to a slot later."""
        slot = floor((self._clock.monotonic_ms() + max(0.0, delay_ms)) / SLOT_MS) + 1
        timer = Timer(self, slot, callback, arguments)
        timers = self._slots.get(slot)
        if timers is None:
            timers = self._slots[slot] = {}
            heappush(self._order, slot)
        timers[timer] = None
        if self._wake is None or slot < self._wake_slot:
            self._set_wake(slot)
        return timer

    def close(self) -> None:
        """Forget every timer."""
        self._slots.clear()
        self._order.clear()
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None

    def _forget(self, timer: Timer, slot: int) -> None:
        timers = self._slots.get(slot)
        if timers is not None:
            timers.pop(timer, None)

    def _set_wake(self, slot: int) -> None:
        if self._wake is not None:
            self._wake.cancel()
        delay_ms = slot * SLOT_MS - self._clock.monotonic_ms()
        self._wake_slot = slot
        self._wake = self._loop.call_later(max(0.0, delay_ms) / 1000, self._turn)

    def _turn(self) -> None:
        self._wake = None
        now_slot = floor(self._clock.monotonic_ms() / SLOT_MS)
        while self._order and self._order[0] <= now_slot:
            for timer in list(self._slots.pop(heappop(self._order))):
                timer._fire()  # noqa: SLF001
        # Slots whose timers were all cancelled are dropped here, so that they wake nobody.
        while self._order and not self._slots[self._order[0]]:
            del self._slots[heappop(self._order)]
        if self._order and self._wake is None:
            self._set_wake(self._order[0])
