"""Partitions of topics that are gone: nobody finds them any more, and they are ended a few at once.

To end one is 40 us, and some hundreds where the disk is busy: who waits for it is answered, its fetcher and its copies
stop, its log is renamed. A topic of ten thousand would hold the loop for half a second. So a slice is ended at once,
and the others a slice a turn of the loop. One whose name is given out again meanwhile is ended before the new one is
opened (`end_now`).
"""

from collections.abc import Callable
from typing import Final

from kavka_broker.loop.backlog import Drain
from kavka_broker.replica.leading.partition import Partition

#: Partitions ended in one turn of the loop.
SLICE_MAX: Final = 5


class Departures:
    """Partitions that are to be ended, by topic and index. `ended` ends a partition."""

    def __init__(self, ended: Callable[[Partition], None], crash: Callable[[BaseException], None]) -> None:
        self._end = ended
        self._waiting: dict[str, dict[int, Partition]] = {}
        self._drain = Drain("ending partitions", lambda: self._waiting, self._end_slice, crash)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, topic: str, partitions: dict[int, Partition]) -> None:
        """Add the partitions of a deleted topic."""
        self._waiting.setdefault(topic, {}).update(partitions)

    def end_now(self, topic: str, index: int) -> None:
        """End the partition of this name, if there is one: another partition takes the name."""
        if index in self._waiting.get(topic, ()):
            self._end_one(topic, index)

    def end_soon(self) -> None:
        """End a slice now, unless others wait already; the rest is ended in the turns to come."""
        self._drain.begin()

    def end_all(self) -> None:
        """End all partitions: at a start, or where the image was replaced as a whole, nothing else is done yet."""
        while self._waiting:
            self._end_slice()

    async def stop(self) -> None:
        """Wait until all partitions are ended."""
        await self._drain.stop()

    def _end_slice(self) -> None:
        for _ in range(min(SLICE_MAX, len(self))):
            topic = next(iter(self._waiting))
            self._end_one(topic, next(iter(self._waiting[topic])))

    def _end_one(self, topic: str, index: int) -> None:
        partitions = self._waiting[topic]
        partition = partitions.pop(index)
        if not partitions:
            del self._waiting[topic]
        self._end(partition)
