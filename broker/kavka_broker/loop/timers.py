"""Many timers over one loop, cheap to set and to cancel.

A broker sets a timer for every long poll and every group member, and cancels nearly all of them. asyncio's own
timers cost a heap operation each and linger when cancelled. Here timers that end within the same tick share a bucket,
a dict in the order of setting; cancelling removes the timer from its bucket at once. Only ticks stand in a heap, and
only the earliest one is armed on the loop.

A timer never fires early, and at most one tick late. Where the armed tick has lost all its timers the loop wakes once
for nothing and arms the next that has any; without timers nothing wakes. Ticks whose buckets are empty are swept when
they outnumber what the last sweep left (`SWEEP_TICKS_MIN` at least), so memory follows the timers that live.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TypeVarTuple

from kavka_broker.interfaces import Clock

__all__ = ["Timer", "Timers"]

TICK_MS = 5
SWEEP_TICKS_MIN = 1024

Arguments = TypeVarTuple("Arguments")
Bucket = dict["Timer", None]


class Timer:
    """A callback that waits for its time. Cancelling twice, or after it fired, does nothing."""

    __slots__ = ("_arguments", "_bucket", "_callback")

    def __init__(self, bucket: Bucket, callback: Callable[..., object], arguments: tuple[object, ...]) -> None:
        self._bucket = bucket
        self._callback = callback
        self._arguments = arguments

    def cancel(self) -> None:
        self._bucket.pop(self, None)

    @property
    def is_waiting(self) -> bool:
        return self in self._bucket

    @property
    def name(self) -> str:
        return str(getattr(self._callback, "__qualname__", type(self._callback).__qualname__))

    def fire(self) -> None:
        """Call back; only `Timers` may do this."""
        self._callback(*self._arguments)


class Timers:
    """Timers of one loop, by the clock's monotonic time."""

    def __init__(self, clock: Clock, loop: AbstractEventLoop) -> None:
        self._monotonic_ms = clock.monotonic_ms
        self._loop = loop
        self._buckets: dict[int, Bucket] = {}
        self.ticks: list[int] = []  # a heap of the keys of `_buckets`
        self._armed: TimerHandle | None = None
        self._armed_tick = 0
        self._sweep_at = SWEEP_TICKS_MIN
        self._is_firing = False
        self._fired: Timer | None = None

    @property
    def doing(self) -> str:
        """Name the callback that fired last, for the watchdog."""
        return "" if self._fired is None else self._fired.name

    def __len__(self) -> int:
        """Return how many timers wait."""
        return sum(map(len, self._buckets.values()))

    def after(self, delay_ms: float, callback: Callable[[*Arguments], object], *arguments: *Arguments) -> Timer:
        """Call `callback` once, `delay_ms` from now. On the loop, never from within this call."""
        tick = int((self._monotonic_ms() + delay_ms) / TICK_MS) + 1
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._open(tick)
        timer = Timer(bucket, callback, arguments)
        bucket[timer] = None
        return timer

    def close(self) -> None:
        """Forget every timer."""
        self._buckets.clear()
        self.ticks.clear()
        self._disarm()

    def _open(self, tick: int) -> Bucket:
        if len(self.ticks) >= self._sweep_at and not self._is_firing:
            self._sweep()
        bucket = self._buckets[tick] = {}
        heappush(self.ticks, tick)
        if not self._is_firing and (self._armed is None or tick < self._armed_tick):
            self._arm(tick)
        return bucket

    def _arm(self, tick: int) -> None:
        self._disarm()
        delay_ms = tick * TICK_MS - self._monotonic_ms()
        self._armed_tick = tick
        self._armed = self._loop.call_at(self._loop.time() + max(delay_ms, 0) / 1000, self.fire_due)

    def _disarm(self) -> None:
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None

    def fire_due(self) -> None:
        """Fire what is due. The loop does so by itself; a clock that was moved on by hand waits for no loop."""
        self._armed = None
        self._is_firing = True
        try:
            self._fire_buckets()
        finally:
            # A callback that raised has left its bucket; the rest of the bucket fires in the next turn of the loop.
            self._is_firing = False
            if self.ticks:
                self._arm(self.ticks[0])

    def _fire_buckets(self) -> None:
        now_tick = int(self._monotonic_ms() / TICK_MS)
        while self.ticks:
            bucket = self._buckets[self.ticks[0]]
            if bucket and self.ticks[0] > now_tick:
                return
            while bucket:
                timer = next(iter(bucket))
                del bucket[timer]
                self._fired = timer
                timer.fire()
            if not self.ticks:  # a callback has closed the timers
                return
            del self._buckets[heappop(self.ticks)]

    def _sweep(self) -> None:
        """Drop the ticks that have no timer any more."""
        self._buckets = {tick: bucket for tick, bucket in self._buckets.items() if bucket}
        self.ticks = list(self._buckets)
        heapify(self.ticks)
        self._sweep_at = max(SWEEP_TICKS_MIN, 2 * len(self.ticks))
