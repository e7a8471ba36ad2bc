"""Syncs the metadata log in a thread, one sync for all that wait, while other work goes on."""

import asyncio
from collections.abc import Awaitable, Callable

from kavka_broker.controller.metadata_log import MetadataLog


class LogSync:
    """`flushed` is called after each sync, `failed` where one has failed: the disk's contents are unknown then. No sync
    begins once it `is_over`.
    """

    def __init__(
        self,
        metadata_log: MetadataLog,
        run_blocking: Callable[[Callable[[], None]], Awaitable[None]],
        flushed: Callable[[], None],
        failed: Callable[[Exception], None],
        is_over: Callable[[], bool],
    ) -> None:
        self._log = metadata_log
        self._run_blocking = run_blocking
        self._on_flushed = flushed
        self._on_failed = failed
        self._is_over = is_over
        self.task: asyncio.Task[None] | None = None  # of the sync that has begun last
        self._is_wanted = False
        self._flushed = asyncio.Event()  # set when the present sync ends, or the next

    def want(self) -> None:
        """Sync the log's present records."""
        self._is_wanted = True
        if self.task is None or self.task.done():
            self.task = asyncio.get_running_loop().create_task(self._flush(), name="metadata log flush")

    async def _flush(self) -> None:
        try:
            while self._is_wanted and not self._is_over():
                self._is_wanted = False
                await self._run_blocking(self._log.flush)
                flushed, self._flushed = self._flushed, asyncio.Event()
                flushed.set()
                self._on_flushed()
        except Exception as error:  # noqa: BLE001 - the disk's contents are unknown now
            self._on_failed(error)

    async def until(self, offset: int) -> None:
        """Wait until the log is synced up to `offset`, or syncs no more."""
        while self._log.synced_offset < offset and not self._is_over():
            self.want()
            await self._flushed.wait()

    async def ended(self) -> None:
        """Wait for the sync that has begun."""
        if self.task is not None:
            await asyncio.gather(self.task, return_exceptions=True)

    def give_up(self) -> None:
        """Let those go on that wait for a sync."""
        self._flushed.set()
