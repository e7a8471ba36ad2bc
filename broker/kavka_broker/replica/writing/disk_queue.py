"""Large batches that wait until the disk has caught up with what is to be written; clients take turns.

A client that produces faster than the disk writes gets as much as the disk does, and nobody else waits for it: what is
small is appended at once, and the loop is never inside a call that the kernel holds back.
"""

import asyncio
from typing import Final

from kavka_broker.core.fair_queueing import FairQueue
from kavka_broker.loop.fair_turns import Turn, give_turn, join_in_turn
from kavka_broker.loop.slices import Slices
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.writeback_throttling import STRAINED_LOOK_SECONDS

BYTE_NS: Final = 1
"""What a byte counts for whose turn it is: a disk writes one in about that time."""


class DiskQueue:
    """Batches that wait, by principals. Those of all disks wait in one queue: strain is of the machine's pages."""

    def __init__(self, slices: Slices) -> None:
        self._slices = slices  # whose `time` may be set later
        self.waiting: FairQueue[Turn] = FairQueue()
        self._watch: asyncio.Task[None] | None = None

    async def wait(self, disk: Disk, size_bytes: int) -> None:
        """Return in the client's turn, when a batch of so many bytes may be written, or strain lasts."""
        if _may_write(disk) and not self.waiting:
            return
        if self._watch is None:
            self._watch = asyncio.create_task(self._let_on(disk))  # its first step comes once this batch waits
        name = self._slices.time.queue_name
        flow = await join_in_turn(self.waiting, name, waits=True, give_back=_give_nothing_back)
        self.waiting.charge(flow, size_bytes * BYTE_NS)
        self.waiting.leave(flow)

    async def _let_on(self, disk: Disk) -> None:
        """Let one batch after the other go on; each is written before the next one is let."""
        while self.waiting:
            if not _may_write(disk):
                await asyncio.sleep(STRAINED_LOOK_SECONDS)
                continue
            if give_turn(self.waiting):
                await asyncio.sleep(0)
        self._watch = None


def _give_nothing_back() -> None:
    """Leave the next turn to the watch, which gives one after the other anyway."""


def _may_write(disk: Disk) -> bool:
    return not disk.is_strained or disk.strain_lasts
