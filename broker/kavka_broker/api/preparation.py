"""Produced batches that take long to make ready: a thread looks into them and packs them again.

A topic with a codec of its own packs every batch that comes in another one, a compacted topic looks at the key of every
record: that may be some hundred milliseconds, in which the loop would serve nobody. The rest of the connection waits
until what was made ready is appended, so batches of a producer keep their order; of producers on several connections
none was ever said.
"""

import asyncio
from typing import Final

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.storage.batch_check import Prepared, prepare_in_thread

AT_ONCE_MAX: Final = 2
"""A thread may take a few times the unpacked size of a batch."""


class Preparation:
    """Prepares batches in threads, at most `AT_ONCE_MAX` at a time."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE_MAX)

    async def prepare(self, batches: memoryview, config: LogConfig, now_ms: int) -> Prepared:
        """The batch as it is to be appended. Raises BrokerError."""
        await self._free.acquire()
        work = asyncio.ensure_future(asyncio.to_thread(_outcome, batches, config, now_ms))
        work.add_done_callback(lambda _: self._free.release())
        # The work is shielded: a thread cannot be stopped, and its place is free only at its end.
        outcome = await asyncio.shield(work)
        if isinstance(outcome, BrokerError):
            raise outcome
        return outcome


def _outcome(batches: memoryview, config: LogConfig, now_ms: int) -> Prepared | BrokerError:
    try:
        return prepare_in_thread(batches, config, now_ms)
    except BrokerError as refusal:
        return refusal
