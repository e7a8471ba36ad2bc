"""Where the chains of this node ended: the file `audit-chain.json` beside the metadata log.

A batch of the trail is sent once its last entry is durable here as an end that is not certain; so whatever a loss of
power takes, the next chain knows where this one can have ended. A file that cannot be written is removed, as it would
tell something else than what the topic has: the next chain then names no chain before it. Where it cannot be removed
either, nothing is sent.
"""

import asyncio
import os
from contextlib import suppress
from typing import Final

from kavka_broker.core.audit.chain import Entry
from kavka_broker.core.audit.chain_ends import End, ends_of, text_of, with_end
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.storage.disk import Disk

log = get("audit")

FILE_NAME: Final = "audit-chain.json"


class KeptEnds:
    """The ends of this node's chains, in memory and on the disk."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._path = os.path.join(directory, FILE_NAME)
        self._is_failing = False  # which has been logged
        self._writing: asyncio.Future[bool] | None = None
        self.ends = self._settled = self._read()

    def _read(self) -> tuple[End, ...]:
        try:
            return ends_of(self._disk.read_file(self._path))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError) as problem:
            log.warning("audit_end.not_known", file=self._path, reason=str(problem))
            return ()

    async def sending(self, last: Entry) -> None:
        """Have it durable that the chain may end with this entry from now on. Raises BrokerError where the disk keeps
        what is not so any more.
        """
        end = End(last.source, last.sequence, last.hash, is_certain=False)
        if end not in self.ends:
            self.ends = with_end(self.ends, end)
        if not await self._write():
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._path} can be neither written nor removed")

    def taken(self, last: Entry) -> None:
        """Take that the topic has this entry; it is written down with the next one that is sent."""
        self.ends = with_end(self.ends, End(last.source, last.sequence, last.hash, is_certain=True))

    async def ended(self) -> None:
        """Have it durable that the chain has ended with the entry that was taken last."""
        await self._write()

    async def _write(self) -> bool:
        """Write what has changed, once what a cancelled caller has begun to write is written. Returns whether the disk
        has nothing else.
        """
        if self._writing is not None:
            await asyncio.shield(self._writing)
        if self._settled == self.ends:
            return True
        self._writing = asyncio.ensure_future(self._write_now(self.ends))
        return await asyncio.shield(self._writing)

    async def _write_now(self, ends: tuple[End, ...]) -> bool:
        """A thread writes: the loop waits for no disk."""
        try:
            await asyncio.to_thread(self._disk.write_file, self._path, text_of(ends))
        except OSError as problem:
            if not self._is_failing:
                log.warning("audit_end.not_kept", file=self._path, reason=str(problem))
            self._is_failing = True
            try:
                await asyncio.to_thread(self._remove)
            except OSError:
                return False
        else:
            self._is_failing = False
        self._settled = ends
        return True

    def _remove(self) -> None:
        with suppress(FileNotFoundError):
            self._disk.remove(self._path)
        self._disk.sync_directory(os.path.dirname(self._path))
