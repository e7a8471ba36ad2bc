"""The memory that requests are received into, of all connections that share one bound.

Most requests arrive whole, and are served before the next connection is read. So all connections receive into one
buffer, and an idle one has none. A connection gets a buffer of its own for a frame that is longer, or that it may not
begin yet, and gives it back as soon as nothing waits in it. Large ones are kept for the next that needs one (fresh
pages cost more than the copy into them), up to `RETAINED_BYTES_MAX` in all; they are maps, which go back to the system
when they are dropped, and take no page before something is received into it.

`queued.max.request.bytes` bounds what connections hold, or were promised when their frame began. As in Apache Kafka a
request is taken as long as there is any room, so the last may exceed the bound; then connections whose frame does not
fit into the shared buffer are not read until another gives room back. What such a connection has received by then is
not counted: else those that wait could use the bound up together, and none would ever go on. Fetch counts, but waits
for nobody: it may be a follower's. What is kept of a request while it is served counts as well.
"""

import asyncio
import mmap
from collections.abc import Callable
from typing import Final

SHARED_BYTES: Final = 64 * 1024
MAPPED_BYTES_MIN: Final = 128 * 1024
RETAINED_BYTES_MAX: Final = 16 * 1024 * 1024
#: A longer frame gets its whole buffer when half as much has arrived: to copy more into it would hold the loop.
AT_ONCE_BYTES_MAX: Final = 4 * 1024 * 1024


class RequestMemory:
    """Buffers for received requests. `bytes_max` of 0 or less is no bound."""

    def __init__(self, bytes_max: int = -1) -> None:
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self.used_bytes = 0
        self.retained_bytes = 0
        self._bytes_max = bytes_max
        self._retained: dict[int, list[memoryview]] = {}  # free buffers by size
        self._waiting: dict[Callable[[], None], None] = {}
        self._is_waking = False

    @property
    def is_full(self) -> bool:
        return 0 < self._bytes_max <= self.used_bytes

    def promise(self, size_bytes: int) -> None:
        """Count the bytes that a connection may receive until it gives its buffer back."""
        self.used_bytes += size_bytes

    def take(self, size_bytes: int) -> memoryview:
        """Return a buffer of at least that size."""
        capacity = capacity_of(size_bytes)
        retained = self._retained.get(capacity)
        if retained:
            self.retained_bytes -= capacity
            return retained.pop()
        return memoryview(mmap.mmap(-1, capacity) if capacity >= MAPPED_BYTES_MIN else bytearray(capacity))

    def give(self, buffer: memoryview, promised_bytes: int = 0) -> None:
        """Give back a buffer in which nothing waits, and the promise of those bytes."""
        capacity = len(buffer)
        if capacity >= MAPPED_BYTES_MIN and self.retained_bytes + capacity <= RETAINED_BYTES_MAX:
            self.retained_bytes += capacity
            self._retained.setdefault(capacity, []).append(buffer)
        self.take_back(promised_bytes)

    def take_back(self, promised_bytes: int) -> None:
        """Take back promised bytes that are not needed, or have to be asked for again."""
        self.used_bytes -= promised_bytes
        if self._waiting and not self._is_waking and not self.is_full:
            self._is_waking = True
            asyncio.get_running_loop().call_soon(self._wake)

    def wait(self, tell: Callable[[], None]) -> None:
        """Call `tell` once there is room, after the connections that wait already."""
        self._waiting[tell] = None

    def forget(self, tell: Callable[[], None]) -> None:
        self._waiting.pop(tell, None)

    def _wake(self) -> None:
        self._is_waking = False
        for _ in range(len(self._waiting)):
            if self.is_full or not self._waiting:
                return
            tell = next(iter(self._waiting))
            del self._waiting[tell]
            tell()


def capacity_of(size_bytes: int) -> int:
    """Return the buffer's size for a frame: small ones exact, large ones in few sizes, so that buffers are reused."""
    if size_bytes < MAPPED_BYTES_MIN // 2:
        return size_bytes
    return max(MAPPED_BYTES_MIN, 1 << (size_bytes - 1).bit_length())
