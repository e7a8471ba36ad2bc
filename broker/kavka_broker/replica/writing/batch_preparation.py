"""Produced batches that take long to make ready: a thread looks into them and packs them again.

A topic with a codec of its own packs every batch that comes in another one, a compacted topic looks at the key of every
record: that may be some hundred milliseconds, in which the loop would serve nobody.

While more waits to be written than the disk soon takes, large batches wait (`disk_queue`), as the kernel would
otherwise hold back the loop. Where that lasts, others fill the disk: then a thread makes room, ahead of the log's end
and for many batches, so that a batch waits only where its client is faster than that.

The rest of the connection waits until what was made ready is appended, so batches of a producer keep their order; of
producers on several connections none was ever said.
"""

import asyncio
from typing import Final

from kavka_broker.loop.coroutine_time import paid
from kavka_broker.loop.request_threads import RequestThreads
from kavka_broker.loop.slices import Slices
from kavka_broker.replica.hosting.hosted_partitions import HostedPartitions
from kavka_broker.replica.writing.disk_queue import DiskQueue
from kavka_broker.storage import preallocation
from kavka_broker.storage.batch_check import NotOnLoop, Prepared, prepare_in_thread
from kavka_broker.storage.log import Log

AT_ONCE_MAX: Final = 2
"""A thread may take a few times the unpacked size of a batch."""


ROOMS_AT_ONCE_MAX: Final = 2
BATCHES_AHEAD: Final = 8
"""Room is made for so many more batches as large as the last, once it is left for half of them."""
SPACE_BYTES_MIN: Final = 64 * preallocation.ROOM_BYTES_AHEAD_MAX
"""Where less is left of the disk, others may need what room in advance would take."""


class NoRoom(NotOnLoop):
    """The batch has to wait for the disk, and is appended as it is then."""


class Preparation:
    """Prepares batches in threads, at most `AT_ONCE_MAX` at a time, and makes room in others; clients take turns."""

    def __init__(self, slices: Slices) -> None:
        self._threads = RequestThreads(slices, AT_ONCE_MAX)
        self._room_threads = RequestThreads(slices, ROOMS_AT_ONCE_MAX)
        self._disk_queue = DiskQueue(slices)
        self._extending: dict[Log, asyncio.Task[None]] = {}
        self._slices = slices  # whose `time` may be set later

    async def prepare(self, batches: memoryview, log: Log, now_ms: int) -> Prepared:
        """The batch as it is to be appended to this log. Raises BrokerError."""
        prepared = await self._threads.run(prepare_in_thread, batches, log.config, now_ms)
        if has_to_wait(log, len(prepared.batch)):
            await self.make_room(log, len(prepared.batch))
        return prepared

    async def make_room(self, log: Log, size_bytes: int) -> None:
        """Return when a batch of so many bytes does not hold up the loop."""
        await self._disk_queue.wait(log.disk, size_bytes)
        if wants_room(log, size_bytes):
            await self._room_threads.run(_make_room, log, size_bytes)

    def extend_room(self, log: Log, size_bytes: int) -> None:
        """Have batches not wait that follow one of so many bytes, while strain lasts. Returns at once."""
        if size_bytes < preallocation.ROOM_BYTES_MIN or not log.disk.strain_lasts:
            return
        ahead = min(BATCHES_AHEAD * size_bytes, preallocation.ROOM_BYTES_AHEAD_MAX)
        if log not in self._extending and log.segments.active.file.room_bytes < ahead // 2:
            work = paid(self._room_threads.run(_extend_room, log, ahead), self._slices.time)
            self._extending[log] = task = asyncio.ensure_future(work)
            task.add_done_callback(lambda _: self._extending.pop(log))


def has_to_wait(log: Log, size_bytes: int) -> bool:
    """Whether a batch is to wait for the disk, or for a thread that makes room, before it is appended."""
    if size_bytes < preallocation.ROOM_BYTES_MIN or not log.disk.is_strained:
        return False
    return not log.disk.strain_lasts or wants_room(log, size_bytes)


def wants_room(log: Log, size_bytes: int) -> bool:
    """Whether a thread is to make room for a batch of `ROOM_BYTES_MIN` or more."""
    return log.disk.strain_lasts and log.segments.active.file.room_bytes < size_bytes <= _bytes_left(log)


def check_room(partitions: HostedPartitions, topic: str, index: int, size_bytes: int) -> None:
    """Raise NoRoom where a batch of `ROOM_BYTES_MIN` or more has to wait for the disk."""
    partition = partitions.get(topic, index)
    if partition is not None and has_to_wait(partition.log, size_bytes):
        raise NoRoom


def _bytes_left(log: Log) -> int:
    """Return what the active segment still takes: other batches go into another file."""
    return log.segments.bytes_max - log.segments.active.file.size


def _make_room(log: Log, size_bytes: int) -> None:
    file = log.segments.active.file
    if size_bytes <= _bytes_left(log):
        file.make_room(size_bytes)


def _extend_room(log: Log, size_bytes: int) -> None:
    try:
        space_bytes = log.disk.space(log.directory)[1]
    except OSError:
        return  # the next append tells what is wrong
    if space_bytes < 0 or space_bytes >= SPACE_BYTES_MIN:  # below 0 where it is not known
        _make_room(log, min(size_bytes, _bytes_left(log)))
