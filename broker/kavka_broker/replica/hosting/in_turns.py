"""What is to be done about very many partitions: some at once, the others some a turn of the loop.

To hand a partition over is 10 us: it takes its role, its fetcher takes or leaves it, its followers are looked at. A
broker that dies hands thousands over to each of the others, in one batch of records. A slice is done at once, which is
all of an ordinary batch. What waits twice is done once: it is looked up when its turn comes.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

#: Items in one turn of the loop.
SLICE_MAX: Final = 200


class InTurns(Generic[K]):
    """Items that wait, in the order in which they came first. `act` handles a slice of them."""

    def __init__(self, name: str, act: Callable[[list[K]], None], crash: Callable[[BaseException], None]) -> None:
        self._name = name
        self._act = act
        self._crash = crash
        self._waiting: dict[K, None] = {}
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, items: Iterable[K]) -> None:
        """Add items to be handled. A slice is handled now, unless others wait already."""
        self._waiting.update(dict.fromkeys(items))
        if self._task is None:
            self._act_on_slice()
            self._go_on()

    async def stop(self) -> None:
        """Wait until all items are handled."""
        while self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def _go_on(self) -> None:
        if self._waiting and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)
            self._task.add_done_callback(self._ended)

    async def _run(self) -> None:
        while self._waiting:
            await asyncio.sleep(0)
            self._act_on_slice()

    def _act_on_slice(self) -> None:
        items = list(islice(self._waiting, SLICE_MAX))
        for item in items:
            del self._waiting[item]
        self._act(items)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crash(error)
        else:
            self._go_on()  # items may have been added after the last look
