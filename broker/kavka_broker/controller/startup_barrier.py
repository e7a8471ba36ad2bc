"""Who waits until the image of this node has what was committed when the node first heard of it after its start."""

import asyncio
from collections.abc import Callable
from typing import Final

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode

#: The interval of log lines of a node that waits for the quorum.
WAIT_NOTE_MS: Final = 10_000


class CatchingUp:
    """The offset to catch up with, once it is known, and the waiters."""

    def __init__(self, metadata: Metadata) -> None:
        self.target: int | None = None
        self._metadata = metadata
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_over(self) -> bool:
        return self.target is not None and self._metadata.next_offset >= self.target

    def aim(self, offset: int) -> None:
        """Set the target, once: records below the first target were in the log before this node started."""
        self.target = offset if self.target is None else self.target
        self.look()

    def look(self) -> None:
        """Wake the waiters if the image has reached the target offset."""
        if self.is_over:
            self._end(lambda future: future.set_result(None))

    def fail(self, code: ErrorCode, reason: str) -> None:
        """Fail all waiters with this error."""
        self._end(lambda future: future.set_exception(BrokerError(code, reason)))

    def _end(self, resolve: Callable[["asyncio.Future[None]"], None]) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                resolve(future)

    async def wait(self, note: Callable[[], None]) -> None:
        """Wait for the target, and call `note` every `WAIT_NOTE_MS` meanwhile. Raises BrokerError after `fail`."""
        if self.is_over:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        while not future.done():
            try:
                async with asyncio.timeout(WAIT_NOTE_MS / 1000):
                    await asyncio.shield(future)
            except TimeoutError:
                note()
        await future
