"""Produced batches that take long to make ready: a thread looks into them and packs them again.

A topic with a codec of its own packs every batch that comes in another one, a compacted topic looks at the key of every
record: that may be some hundred milliseconds, in which the loop would serve nobody. While the disk makes writers wait,
a thread also makes room for large batches, which would otherwise wait on the loop. The rest of the connection waits
until what was made ready is appended, so batches of a producer keep their order; of producers on several connections
none was ever said.
"""

from typing import Final

from kavka_broker.api.request_threads import RequestThreads
from kavka_broker.slices import Slices
from kavka_broker.storage import room
from kavka_broker.storage.batch_check import Prepared, prepare_in_thread
from kavka_broker.storage.log import Log

AT_ONCE_MAX: Final = 2
"""A thread may take a few times the unpacked size of a batch."""


class Preparation:
    """Prepares batches in threads, at most `AT_ONCE_MAX` at a time; clients take turns."""

    def __init__(self, slices: Slices) -> None:
        self._threads = RequestThreads(slices, AT_ONCE_MAX)

    async def prepare(self, batches: memoryview, log: Log, now_ms: int) -> Prepared:
        """The batch as it is to be appended to this log. Raises BrokerError."""
        return await self._threads.run(_prepare, batches, log, now_ms)


def wants_room(log: Log, size_bytes: int) -> bool:
    """Whether a thread is to make room for a batch before it is appended."""
    return size_bytes >= room.ROOM_BYTES_MIN and log.disk.is_strained


def _prepare(batches: memoryview, log: Log, now_ms: int) -> Prepared:
    prepared = prepare_in_thread(batches, log.config, now_ms)
    size_bytes, active = len(prepared.batch), log.segments.active
    if wants_room(log, size_bytes) and active.file.size + size_bytes <= log.segments.bytes_max:
        active.file.make_room(size_bytes)  # otherwise the batch goes into another file
    return prepared
