"""Partitions that were placed here and whose logs are yet to be opened: a few at once, the rest between other work.

To make a log is half a millisecond of directories and files. A topic of a thousand partitions opened in one go would
hold the loop, and with it heartbeats, votes and fetches, for as long as a follower needs to be taken for dead. So a
slice is opened at once, which is all of an ordinary topic, and the others a slice a turn of the loop, in their order.
What happens to a partition meanwhile is in the image, which is looked at when its turn comes.
"""

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Final

#: So many logs in one turn of the loop.
SLICE_MAX: Final = 8
Place = tuple[bytes, int]  # topic id, index


class Openings:
    """Who waits, in order. `opened` opens one, or finds that it is not to be opened any more."""

    def __init__(self, opened: Callable[[bytes, int], None], crash: Callable[[BaseException], None]) -> None:
        self._open = opened
        self._crash = crash
        self._waiting: dict[Place, None] = {}
        self._task: asyncio.Task[None] | None = None

    def __contains__(self, place: Place) -> bool:
        return place in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, topic_id: bytes, index: int) -> None:
        self._waiting[topic_id, index] = None

    def open_all(self) -> None:
        """At a start nothing else is done yet."""
        while self._waiting:
            self._open_slice()

    def open_soon(self) -> None:
        """A slice now, unless others wait already; what is left in the turns to come."""
        if not self._waiting or self._task is not None:
            return
        self._open_slice()
        if self._waiting:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="opening logs")
            self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._waiting:
            await asyncio.sleep(0)
            self._open_slice()

    def _open_slice(self) -> None:
        for place in list(islice(self._waiting, SLICE_MAX)):
            del self._waiting[place]
            self._open(*place)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crash(error)
