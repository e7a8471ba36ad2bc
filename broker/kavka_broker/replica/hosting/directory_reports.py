"""Tells the controller in which log directory each replica is (KIP-858), to know what a failed one takes along.

The controller chooses a directory only where a broker has one; else the broker does, when it makes the log or moves
it, and reports it here. Reports are sent together, and again until the controller has taken them. What is newer
replaces what is older.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.storage.log_directory import LogDirectory

log = get("replica")

RETRY_S: Final = 0.5
RETRY_S_MAX: Final = 10.0
#: Replicas in one request.
REPORTS_MAX: Final = 2_000

Place = tuple[bytes, int]  # topic id, index
#: Reports directory ids by replica to the controller. Raises BrokerError where the report did not arrive.
AssignDirectories = Callable[[Mapping[Place, bytes]], Awaitable[None]]


class DirectoryReports:
    """Reports of replicas' directories that the controller has yet to take."""

    def __init__(self, assign: AssignDirectories | None, crash: Callable[[BaseException], None]) -> None:
        self._assign = assign
        self._crash = crash
        self._waiting: dict[Place, bytes] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_started = False
        self._taken = asyncio.Event()

    def report(self, place: Place, directory_id: bytes) -> None:
        self._waiting[place] = directory_id
        self._send_soon()

    def forget(self, place: Place) -> None:
        """Drop the report: the replica is gone, or the controller knows."""
        self._waiting.pop(place, None)
        self._taken.set()

    def start(self) -> None:
        self._is_started = True
        self._send_soon()

    async def told(self) -> None:
        """Wait until the controller has taken every report."""
        while self._assign is not None and self._waiting:
            self._taken.clear()
            await self._taken.wait()

    async def stop(self) -> None:
        self._is_started = False
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _send_soon(self) -> None:
        if self._is_started and self._waiting and self._assign is not None and self._task is None:
            task = asyncio.get_running_loop().create_task(self._send(self._assign), name="directory reports")
            self._task = watch(task, self._crash, forget=self._forget_task, then=self._send_soon)

    def _forget_task(self, _: "asyncio.Task[None]") -> None:
        self._task = None

    async def _send(self, assign: AssignDirectories) -> None:
        pause_s = RETRY_S
        while self._waiting:
            sent = dict(list(self._waiting.items())[:REPORTS_MAX])
            try:
                await assign(sent)
            except BrokerError as error:
                log.warning("directories.not_reported", replicas=len(sent), reason=str(error))
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, RETRY_S_MAX)
                continue
            for place, directory_id in sent.items():
                if self._waiting.get(place) == directory_id:
                    del self._waiting[place]
            self._taken.set()


def call_on(loop: asyncio.AbstractEventLoop, call: Callable[[LogDirectory], None], failed: LogDirectory) -> None:
    """Call `call` on the loop: a directory may fail in a thread that syncs it."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(call, failed)
