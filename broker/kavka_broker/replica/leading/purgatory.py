"""Requests that wait for a partition to move.

A fetch that wants more bytes than there are, and a produce whose records are not committed yet, wait here, keyed by
the partition that can wake them. A waiting request is one small object on its partitions' lists and one entry of
the timer wheel: no task polls, and an append that nobody waits for pays one `if`.
"""

import asyncio
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Final, Protocol

from kavka_broker.loop.timers import Timer, Timers

PURGE_MIN: Final = 1_000


class FetchWaiter:
    """A fetch that waits for `needed_bytes` more, until its time is over.

    A waiter stands on the lists it is given: one for each partition, or that of a follower's feed.
    """

    __slots__ = ("_lists", "_timer", "future", "needed_bytes")

    def __init__(self, lists: "Sequence[list[FetchWaiter]]", needed_bytes: int, wait_ms: float, timers: Timers) -> None:
        assert needed_bytes > 0
        self.needed_bytes = needed_bytes
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lists = list(lists)
        for waiting in lists:
            waiting.append(self)
        self._timer: Timer | None = timers.after(wait_ms, self._wake)
        self.future.add_done_callback(self._leave)

    @property
    def is_watching(self) -> bool:
        """Whether any partition may wake the fetch."""
        return bool(self._lists)

    def watch(self, waiting: "list[FetchWaiter]") -> None:
        """Put the fetch on one more list."""
        if not self.future.done():
            self._lists.append(waiting)
            waiting.append(self)

    def give_up(self) -> None:
        """Take the fetch off its lists."""
        self.future.cancel()

    def progressed(self, size_bytes: int) -> None:
        """Count `size_bytes` more that can be read."""
        self.needed_bytes -= size_bytes
        if self.needed_bytes <= 0:
            self._wake()

    def interrupt(self) -> None:
        """Wake the fetch to look again: the partition's leader changed, or it is gone."""
        self._wake()

    def _wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def _leave(self, _: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None  # breaks the cycle of waiter and timer, so that no garbage collection is needed
        for waiting in self._lists:
            waiting.remove(self)


class Waiter(Protocol):
    """A waiter that is told once: a future, or its substitute."""

    def done(self) -> bool: ...

    def set_result(self, result: None, /) -> None: ...

    def set_exception(self, error: Exception, /) -> None: ...


class OffsetWaiters:
    """Waiters for an offset of one partition to be reached: appends for the high watermark, the lowest first.

    Waiters that have given up stay on the heap until they are as many as the others: while no follower fetches,
    a producer with a short time to wait may come again and again.
    """

    __slots__ = ("_heap", "_purge_at", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Waiter]] = []
        self._sequence = 0
        self._purge_at = PURGE_MIN

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, offset: int) -> asyncio.Future[None]:
        """Return a future that is done when the watched offset is at least `offset`."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.push(offset, future)
        return future

    def push(self, offset: int, waiter: Waiter) -> None:
        """Tell `waiter` when the watched offset is at least `offset`."""
        self._sequence += 1
        if len(self._heap) >= self._purge_at:
            self._purge()
        heappush(self._heap, (offset, self._sequence, waiter))

    def _purge(self) -> None:
        self._heap = [waiting for waiting in self._heap if not waiting[2].done()]
        heapify(self._heap)
        self._purge_at = max(PURGE_MIN, 2 * len(self._heap))

    def reached(self, offset: int) -> None:
        while self._heap and self._heap[0][0] <= offset:
            _, _, waiter = heappop(self._heap)
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: Exception) -> None:
        """Fail all waiters: the partition has lost its leadership or its disk."""
        heap, self._heap = self._heap, []
        for _, _, waiter in heap:
            if not waiter.done():
                waiter.set_exception(error)
