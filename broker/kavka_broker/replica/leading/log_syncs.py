"""Threads that sync what `flush.messages` wants synced, while the loop goes on with appends; and logs that are cut.

One sync of a log runs at a time, and covers all that was appended before it began: however many clients wait, their
records cost two syncs at most, the one that runs when they come and the next. A log whose sync is over goes behind the
others that wait. Each log directory has a line and threads of its own: where one does not come back from its syncs, or
is full, the logs in the others do not wait for it.

A sync that fails has taken the log's directory offline, and whoever waits for it hears that from there. One that could
not be tried, because there was no descriptor to open a file with, or no room for what a cut writes, is tried again.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from errno import ENOSPC
from typing import TYPE_CHECKING, Final

from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.storage.log import Log

if TYPE_CHECKING:
    from kavka_broker.replica.leading.partition import Partition

#: Syncs at the same time in one log directory.
SYNCS_PER_DIRECTORY_MAX: Final = 4
RETRY_S: Final = 0.1


class LogSyncs:
    """Partitions whose logs wait for a sync, in a line for each log directory."""

    def __init__(
        self, crash: Callable[[BaseException], None], per_directory_max: int = SYNCS_PER_DIRECTORY_MAX
    ) -> None:
        self._crash = crash
        self._per_directory_max = per_directory_max
        self.lines: dict[str, Line] = {}

    def soon(self, partition: "Partition") -> None:
        """Sync the partition's log in its turn, unless that is planned already; `partition.synced` is told."""
        directory = os.path.dirname(partition.log.directory)
        line = self.lines.get(directory)
        if line is None:
            line = self.lines[directory] = Line(self._crash, self._per_directory_max)
        line.add(partition)

    async def stop(self) -> None:
        """Wait until no partition waits for a sync. A log that cannot be synced now is left to its closing."""
        await asyncio.gather(*(line.stop() for line in self.lines.values()))


class Line:
    """Partitions of one directory that wait for a sync, in the order in which they came."""

    def __init__(self, crash: Callable[[BaseException], None], workers_max: int) -> None:
        self._crash = crash
        self._workers_max = workers_max
        self._known: dict[Partition, None] = {}  # partitions that wait, or are synced just now
        self._waiting: deque[Partition] = deque()
        self.workers: dict[asyncio.Task[None], None] = {}
        self._is_stopping = False

    def add(self, partition: "Partition") -> None:
        if partition in self._known:
            return
        self._known[partition] = None
        self._waiting.append(partition)
        self._employ()

    def _employ(self) -> None:
        if self._waiting and len(self.workers) < self._workers_max:
            worker = asyncio.get_running_loop().create_task(self._work(), name="log syncs")
            self.workers[worker] = None
            watch(worker, self._crash, forget=self.workers.pop, then=self._employ)

    async def stop(self) -> None:
        self._is_stopping = True
        while self.workers:
            await asyncio.gather(*self.workers, return_exceptions=True)

    async def _work(self) -> None:
        while self._waiting:
            partition = self._waiting.popleft()
            synced = partition.log  # the log that is synced; a copy in another directory may take its place meanwhile
            await self._sync(partition, synced)
            if self._is_to_go_on(synced):
                self._waiting.append(partition)
            else:
                del self._known[partition]

    async def _sync(self, partition: "Partition", log: Log) -> None:
        try:
            await asyncio.to_thread(log.durability.sync_records)
        except BrokerError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno == ENOSPC:
                partition.refused(error)
            if self._is_to_go_on(log):
                await asyncio.sleep(RETRY_S)
            return
        partition.synced()

    def _is_to_go_on(self, log: Log) -> bool:
        return log.durability.awaits_sync and not (log.is_closed or log.is_failed or self._is_stopping)
