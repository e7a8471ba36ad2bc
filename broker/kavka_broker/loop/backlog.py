"""What is to be done about very many partitions: some at once, the others some a turn of the loop.

To hand a partition over is 10 us: it takes its role, its fetcher takes or leaves it, its followers are looked at. A
broker that dies hands thousands over to each of the others, in one batch of records. A slice is done at once, which is
all of an ordinary batch. What waits twice is done once: it is looked up when its turn comes.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import Final, Generic, TypeVar

from kavka_broker.loop.tasks import Crash, watch

K = TypeVar("K", bound=Hashable)

#: Items in one turn of the loop.
SLICE_MAX: Final = 200


class Drain:
    """Work of which `act` does a slice: one at once, and one a turn of the loop while it `has_more`. `crash` is called
    with an error of `act` in a later turn.
    """

    def __init__(self, name: str, has_more: Callable[[], object], act: Callable[[], None], crash: Crash) -> None:
        self._name = name
        self._has_more = has_more
        self._act = act
        self._crash = crash
        self.task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Do a slice now, unless a task does slices already; the rest is done in the turns to come."""
        if self.task is None and self._has_more():
            self._act()
            self._go_on()

    async def stop(self) -> None:
        """Wait until all work is done."""
        while self.task is not None:
            await asyncio.gather(self.task, return_exceptions=True)

    def _go_on(self) -> None:
        if self.task is None and self._has_more():
            task = asyncio.get_running_loop().create_task(self._run(), name=self._name)
            self.task = watch(task, self._crash, forget=self._forget, then=self._go_on)

    async def _run(self) -> None:
        while self._has_more():
            await asyncio.sleep(0)
            self._act()

    def _forget(self, task: "asyncio.Task[None]") -> None:
        assert task is self.task, f"{self._name}: two tasks do one work"
        self.task = None


class Backlog(Generic[K]):
    """Items that wait, in the order in which they came first. `act` handles a slice of them."""

    def __init__(self, name: str, act: Callable[[list[K]], None], crash: Crash) -> None:
        self._act = act
        self._waiting: dict[K, None] = {}
        self._drain = Drain(name, lambda: self._waiting, self._act_on_slice, crash)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, items: Iterable[K]) -> None:
        """Add items to be handled. A slice is handled now, unless others wait already."""
        self._waiting.update(dict.fromkeys(items))
        self._drain.begin()

    async def stop(self) -> None:
        """Wait until all items are handled."""
        await self._drain.stop()

    def _act_on_slice(self) -> None:
        items = list(islice(self._waiting, SLICE_MAX))
        for item in items:
            del self._waiting[item]
        self._act(items)
