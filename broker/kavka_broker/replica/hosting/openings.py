"""Partitions that were placed here and whose logs are yet to be opened: one at once, the rest between other work.

To make a log is half a millisecond of directories and files, and several where the disk is busy. A topic of a thousand
partitions opened in one go would hold the loop, and with it heartbeats, votes and fetches, for as long as a follower
needs to be taken for dead. So one is opened at once, and the others one a turn of the loop, in their order.
What happens to a partition meanwhile is in the image, which is looked at when its turn comes. Where checkpoints still
speak of a log that had the name, a thread lets them forget it first (`forget_first`): that is a sync or six.

The topic's id in a new log is to survive a loss of power before the first record does. Threads sync many of them at a
time (`secure`), right after they were made. Clients that write to one earlier wait for that (`secured`), and followers
do not fetch, nor coordinators of groups serve, before (`when_secured`). Whoever else appends syncs it (`Log.secure`).
"""

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from kavka_broker.loop.backlog import Drain
from kavka_broker.loop.tasks import watch
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.storage.names import PartitionName

#: Logs opened in one turn of the loop: even one may wait for the disk.
SLICE_MAX: Final = 1
Place = tuple[bytes, int]  # topic id, index


class Openings:
    """Partitions that wait to be opened, in order. `opened` opens one, or finds that it is not to be opened (yet)."""

    def __init__(
        self, opened: Callable[[bytes, int, bool], None], logs: LogManager, crash: Callable[[BaseException], None]
    ) -> None:
        self._open = opened
        self._logs = logs
        self._crash = crash
        # Partitions that wait to be opened, and whether a thread was asked to forget former logs of the name.
        self._waiting: dict[Place, bool] = {}
        self._former: dict[Place, PartitionName] = {}
        self._drain = Drain("opening logs", lambda: self._waiting, self._open_and_secure, crash)
        self._forgetting: asyncio.Task[None] | None = None
        self._securing: asyncio.Task[None] | None = None
        self._is_started = False

    def __contains__(self, place: Place) -> bool:
        return place in self._waiting or place in self._former

    def __len__(self) -> int:
        return len(self._waiting) + len(self._former)

    def add(self, topic_id: bytes, index: int) -> None:
        self._waiting[topic_id, index] = False

    def add_all(self, topic_id: bytes, indexes: Iterable[int]) -> None:
        self._waiting.update({(topic_id, index): False for index in indexes})

    def forget_first(self, topic: str, topic_id: bytes, index: int) -> bool:
        """Open the log after a thread has tried to make the checkpoints forget a former log of this name, if there was
        one; returns whether there was.
        """
        if not self._is_started or not self._logs.remembers_former(topic, index):
            return False
        self._former[topic_id, index] = PartitionName(topic, index)
        self._forget_soon()
        return True

    def _forget_soon(self) -> None:
        if self._former and self._forgetting is None:
            task = asyncio.get_running_loop().create_task(self._forget(), name="forgetting former logs")
            self._forgetting = watch(task, self._crash, forget=self._end_forgetting, then=self._forget_soon)

    def open_all(self) -> None:
        """Open all logs: at a start nothing else is done yet."""
        while self._waiting:
            self._open_slice()

    def start(self) -> None:
        """Start forgetting former logs in threads: the loop runs from now on."""
        self._is_started = True
        self._secure_soon()

    def open_soon(self) -> None:
        """Open a slice now, unless others wait already; the rest is opened in the turns to come."""
        self._drain.begin()

    @property
    def is_securing(self) -> bool:
        """Whether threads are syncing the ids of new logs."""
        return self._securing is not None

    async def secured(self) -> None:
        """Wait until threads have synced the ids of all logs that are there now."""
        if self._securing is not None:
            await asyncio.gather(asyncio.shield(self._securing), return_exceptions=True)

    def when_secured(self, log: Log) -> "asyncio.Future[None] | None":
        """Return a future that ends when a thread has tried to sync the id of this log; None where there is no need."""
        if log.durability.is_secured or log.is_failed:
            return None
        self._secure_soon()
        return self._securing

    def _secure_soon(self) -> None:
        """Let a thread sync the ids of the logs that were made."""
        if self._is_started and self._securing is None and self._logs.has_unsecured:
            task = asyncio.get_running_loop().create_task(self._secure(), name="securing new logs")
            self._securing = watch(task, self._crash, forget=self._end_securing, then=self._secure_soon)

    async def stop(self) -> None:
        self._is_started = False
        self._waiting.clear()
        self._former.clear()
        if self._forgetting is not None:
            await asyncio.gather(self._forgetting, return_exceptions=True)
        await self._drain.stop()
        if self._securing is not None:
            await asyncio.gather(self._securing, return_exceptions=True)

    async def _secure(self) -> None:
        while self._logs.has_unsecured:
            await asyncio.to_thread(self._logs.secure)

    def _end_securing(self, _: "asyncio.Task[None]") -> None:
        self._securing = None

    async def _forget(self) -> None:
        while self._former:
            former = dict(self._former)
            await asyncio.to_thread(self._logs.forget_former, set(former.values()))
            for place in former:
                if self._former.pop(place, None) is not None:
                    self._waiting[place] = True
            self.open_soon()

    def _end_forgetting(self, _: "asyncio.Task[None]") -> None:
        self._forgetting = None

    def _open_and_secure(self) -> None:
        self._open_slice()
        self._secure_soon()

    def _open_slice(self) -> None:
        for place in list(islice(self._waiting, SLICE_MAX)):
            self._former.pop(place, None)  # the same partition may have been added twice: one opening is enough
            self._open(*place, self._waiting.pop(place))
