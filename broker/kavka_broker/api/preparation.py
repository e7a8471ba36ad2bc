"""Produced batches that take long to make ready: a thread looks into them and packs them again.

A topic with a codec of its own packs every batch that comes in another one, a compacted topic looks at the key of every
record: that may be some hundred milliseconds, in which the loop would serve nobody. The rest of the connection waits
until what was made ready is appended, so batches of a producer keep their order; of producers on several connections
none was ever said.
"""

from typing import Final

from kavka_broker.api.request_threads import RequestThreads
from kavka_broker.core.config.topic import LogConfig
from kavka_broker.slices import Slices
from kavka_broker.storage.batch_check import Prepared, prepare_in_thread

AT_ONCE_MAX: Final = 2
"""A thread may take a few times the unpacked size of a batch."""


class Preparation:
    """Prepares batches in threads, at most `AT_ONCE_MAX` at a time; clients take turns."""

    def __init__(self, slices: Slices) -> None:
        self._threads = RequestThreads(slices, AT_ONCE_MAX)

    async def prepare(self, batches: memoryview, config: LogConfig, now_ms: int) -> Prepared:
        """The batch as it is to be appended. Raises BrokerError."""
        return await self._threads.run(prepare_in_thread, batches, config, now_ms)
