"""Partitions that were placed here and whose logs are yet to be opened: one at once, the rest between other work.

To make a log is half a millisecond of directories and files, and several where the disk is busy. A topic of a thousand
partitions opened in one go would hold the loop, and with it heartbeats, votes and fetches, for as long as a follower
needs to be taken for dead. So one is opened at once, and the others one a turn of the loop, in their order.
What happens to a partition meanwhile is in the image, which is looked at when its turn comes. A thread goes first where
checkpoints still speak of a log that had the name, and lets them forget it: that is a sync or six. A thread opens, too,
what could not be opened for want of room (`prepare_first`): that may recover the log.

The topic's id in a new log is to survive a loss of power before the first record does. Threads sync many of them at a
time (`secure`), right after they were made. Clients that write to one earlier wait for that (`secured`), and followers
do not fetch, nor coordinators of groups serve, before (`when_secured`). Whoever else appends syncs it (`Log.secure`).
"""

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.loop.backlog import Drain
from kavka_broker.loop.tasks import watch
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_manager import LogManager

#: Logs opened in one turn of the loop: even one may wait for the disk.
SLICE_MAX: Final = 1
Place = tuple[bytes, int]  # topic id, index


class Openings:
    """Partitions that wait to be opened, in order. `opened` opens one, or finds that it is not to be opened (yet)."""

    def __init__(
        self,
        opened: Callable[[bytes, int, bool], None],
        logs: LogManager,
        crash: Callable[[BaseException], None],
        *,
        config_of: Callable[[str], LogConfig],
        now_ms: Callable[[], int],
    ) -> None:
        self._open = opened
        self._logs = logs
        self._crash = crash
        self._config_of = config_of
        self._now_ms = now_ms
        # Partitions that wait to be opened, and whether a thread was asked to prepare that.
        self._waiting: dict[Place, bool] = {}
        self._unprepared: dict[Place, PartitionName] = {}
        # Names whose files a thread may be working on: the loop leaves them alone.
        self._preparing: frozenset[PartitionName] = frozenset()
        self.drain = Drain("opening logs", lambda: self._waiting, self._open_and_secure, crash)
        self.preparation: asyncio.Task[None] | None = None
        self._securing: asyncio.Task[None] | None = None
        self._is_started = False

    def __contains__(self, place: Place) -> bool:
        return place in self._waiting or place in self._unprepared

    def __len__(self) -> int:
        return len(self._waiting) + len(self._unprepared)

    def add(self, topic_id: bytes, index: int) -> None:
        self._waiting[topic_id, index] = False

    def add_all(self, topic_id: bytes, indexes: Iterable[int]) -> None:
        self._waiting.update({(topic_id, index): False for index in indexes})

    def wait_for_thread(self, topic: str, topic_id: bytes, index: int) -> bool:
        """Open the log after the thread, if that is working on files of this name; returns whether it is."""
        name = PartitionName(topic, index)
        if name in self._preparing:
            self._unprepared[topic_id, index] = name
        return name in self._preparing

    def prepare_first(self, topic: str, topic_id: bytes, index: int) -> bool:
        """Open the log after a thread has tried to make the checkpoints forget a former log of this name, or to open
        again one that found no room; returns whether there is one or the other.
        """
        is_needed = self._logs.remembers_former(topic, index) or self._logs.awaits_reopening(topic, index)
        if not self._is_started or not is_needed:
            return False
        self._unprepared[topic_id, index] = PartitionName(topic, index)
        self._prepare_soon()
        return True

    def _prepare_soon(self) -> None:
        if self._unprepared and self.preparation is None:
            task = asyncio.get_running_loop().create_task(self._prepare(), name="preparing logs")
            self.preparation = watch(task, self._crash, forget=self._end_preparation, then=self._prepare_soon)

    def open_all(self) -> None:
        """Open all logs: at a start nothing else is done yet."""
        while self._waiting:
            self._open_slice()

    def start(self) -> None:
        """Start preparing logs in threads: the loop runs from now on."""
        self._is_started = True
        self._secure_soon()

    def open_soon(self) -> None:
        """Open a slice now, unless others wait already; the rest is opened in the turns to come."""
        self.drain.begin()

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
        self._unprepared.clear()
        if self.preparation is not None:
            await asyncio.gather(self.preparation, return_exceptions=True)
        await self.drain.stop()
        if self._securing is not None:
            await asyncio.gather(self._securing, return_exceptions=True)

    async def _secure(self) -> None:
        while self._logs.has_unsecured:
            await asyncio.to_thread(self._logs.secure)

    def _end_securing(self, _: "asyncio.Task[None]") -> None:
        self._securing = None

    async def _prepare(self) -> None:
        while self._unprepared:
            unprepared = dict(self._unprepared)
            self._preparing = frozenset(unprepared.values())
            configs = {name: self._config_of(name.topic) for name in self._preparing}
            await asyncio.to_thread(self._work, configs, self._now_ms())
            self._preparing = frozenset()
            for place in unprepared:
                if self._unprepared.pop(place, None) is not None:
                    self._waiting[place] = True
            self.open_soon()

    def _work(self, configs: dict[PartitionName, LogConfig], now_ms: int) -> None:
        self._logs.forget_former(set(configs))
        self._logs.reopen(configs, now_ms)

    def _end_preparation(self, _: "asyncio.Task[None]") -> None:
        self.preparation = None

    def _open_and_secure(self) -> None:
        self._open_slice()
        self._secure_soon()

    def _open_slice(self) -> None:
        for place in list(islice(self._waiting, SLICE_MAX)):
            self._unprepared.pop(place, None)  # the same partition may have been added twice: one opening is enough
            self._open(*place, self._waiting.pop(place))
