"""Long work on the loop, in slices: the others have their turn in between.

Work is a generator that yields where its slice may end, which its `Cost` tells it. Costs are numbers of about a
microsecond each, not time: so the same request is cut at the same places on every machine and in every replay. A slice
goes on until the first yield behind a quantum by the clock, and is cut at `COST_PER_SLICE` at the latest.

    def search(cost: Cost) -> Work[Found]:
        for batch in batches:
            ...
            if cost.add(len(records)):
                yield
        return found

What fits into one slice is done when `run` returns. Of all that is longer one slice is done a turn of the loop, in the
order of `turns`: fair between the clients for whom it is done, and first come first served between the works of one.
Ten searches take ten times as long as one, and hold the loop no longer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from itertools import islice
from typing import Final, Protocol, TypeVar

from kavka_broker.loop.tasks import watch
from kavka_broker.loop.turns import OWN, Flow, Turns

T = TypeVar("T")
Work = Generator[None, None, T]

COST_PER_YIELD: Final = 250
YIELDS_PER_SLICE_MAX: Final = 10
COST_PER_SLICE: Final = COST_PER_YIELD * YIELDS_PER_SLICE_MAX


def at_once(work: Generator[object, None, T]) -> T:
    """Do all of the work now, for a caller that may take the time: a thread, or a start."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def as_long_as(holds: Callable[[], bool], work: Work[T]) -> Work[T | None]:
    """Return the work, which is given up for None when `holds` is false after a turn of others."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        yield
        if not holds():
            return None


def sliced(work: Generator[int, None, T], cost: "Cost") -> Work[T]:
    """Return work of the core, which knows no slices: it yields what each step costs."""
    while True:
        try:
            step_cost = next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        if cost.add(step_cost):
            yield


class Payer(Protocol):
    """A request, which counts the time on the loop that is spent for it."""

    loop_ns: int

    @property
    def flow(self) -> Flow | None:
        """Its client, as far as turns on the loop go."""

    @property
    def queue_name(self) -> tuple[str, str]:
        """Its client where it has turns of something else: by client ids one client could be many."""


class LoopTime:
    """Whose time on the loop is being spent: work that is begun meanwhile is for the same request."""

    __slots__ = ("now_ns", "payer", "thread_ns", "turns")

    def __init__(
        self, now_ns: Callable[[], int], turns: Turns | None = None, thread_ns: Callable[[], int] | None = None
    ) -> None:
        self.now_ns = now_ns
        self.thread_ns = thread_ns or now_ns  # called in a thread, measures what that does
        self.turns = turns or Turns(now_ns)
        self.payer: Payer | None = None

    @property
    def queue_name(self) -> tuple[str, str]:
        """The principal that pays, with its address where it has none; that of no client where none does."""
        payer = self.payer
        return OWN if payer is None or payer.flow is None else payer.queue_name


class Cost:
    """The cost of work since it yielded."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = COST_PER_YIELD

    def add(self, cost: int) -> bool:
        """Count what was done; True where the slice may end: yield, and count from nothing again."""
        self._left -= cost
        if self._left > 0:
            return False
        self._left = COST_PER_YIELD
        return True


class Slices:
    """Long work of one loop, cut into slices. `time` knows which request pays for them, and who is next."""

    def __init__(self) -> None:
        self.time = LoopTime(lambda: 0)
        self._at_work = 0

    @property
    def is_at_work(self) -> bool:
        """Whether some work has been begun and is not over."""
        return self._at_work > 0

    async def turn(self) -> None:
        """Wait for the next turn: until it waits again the caller should do no more than a slice."""
        flow = self._flow_of(self.time.payer)
        await self._granted(flow)
        self.time.turns.over(flow, 0)  # the request's own steps are charged

    async def in_turns(self, items: Iterable[T], per_turn: int) -> AsyncIterator[Sequence[T]]:
        """Yield the items in their order, `per_turn` at a time, each time in a turn of its own. Their source must not
        change meanwhile.
        """
        rest, is_first = iter(items), True
        while some := list(islice(rest, per_turn)):
            if not is_first:
                await self.turn()
            is_first = False
            yield some

    def run(self, work: Work[T]) -> "T | asyncio.Task[T]":
        """Return the work's result, or a task for it where it takes more than a slice."""
        try:
            self._do_slice(work, self.time.now_ns())
        except StopIteration as end:
            result: T = end.value
            return result
        return asyncio.get_running_loop().create_task(self._finish(work, self.time.payer))

    def run_aside(self, work: Work[None]) -> None:
        """Do work that nobody waits for, the first slice now. An unexpected error of it ends the process."""
        task = self.run(work)
        if isinstance(task, asyncio.Task):
            watch(task)

    def _do_slice(self, work: Work[T], began_ns: int) -> None:
        """Do the work for a quantum. Raises StopIteration where it ends."""
        time = self.time
        end_ns = began_ns + time.turns.quantum_ns
        for _ in range(YIELDS_PER_SLICE_MAX):
            next(work)
            if time.now_ns() >= end_ns:
                return

    async def whole(self, work: Work[T]) -> T:
        """Return the work's result, as `run` does, for a caller in a task of its own."""
        result = self.run(work)
        return await result if isinstance(result, asyncio.Task) else result

    async def _finish(self, work: Work[T], payer: Payer | None) -> T:
        flow = self._flow_of(payer)
        try:
            while True:
                await self._granted(flow)
                began_ns = self.time.now_ns()
                try:
                    self._do_slice(work, began_ns)
                except StopIteration as end:
                    result: T = end.value
                    return result
                finally:
                    took_ns = self.time.now_ns() - began_ns
                    self.time.turns.over(flow, took_ns)
                    if payer is not None:
                        payer.loop_ns += took_ns
        finally:
            work.close()

    async def _granted(self, flow: Flow) -> None:
        self._at_work += 1
        try:
            await self.time.turns.granted(flow)
        finally:
            self._at_work -= 1

    def _flow_of(self, payer: Payer | None) -> Flow:
        return (payer and payer.flow) or self.time.turns.own
