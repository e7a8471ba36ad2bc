"""The memory that large requests take once they are decoded, of all connections together.

A request of many small elements takes ten to twenty times its bytes as objects, and its answer as much again. So a
large one is decoded while there is room, and otherwise waits as the bytes that have come. Principals have room in turn
by the bytes that each has had, as for long answers (`answer_memory`). A request counts until its answer is made, or its
handler waits without it, as JoinGroup and Fetch do. What nodes ask each other does not wait.
"""

from functools import partial
from typing import Final

from kavka_broker.core.fair_queueing import FairQueue, Flow
from kavka_broker.loop.fair_turns import Turn, give_turn, join_in_turn
from kavka_broker.protocol.wire import ELEMENTS_MAX

BYTES_MAX: Final = 256 * 1024 * 1024
ELEMENT_BYTES: Final = 250
"""Bytes of an element in a request, and of the one in its answer."""
WIRE_BYTES_MIN: Final = 4
"""Bytes of an element as it comes: an index of a partition."""


class Room:
    """The bytes that one request takes, until it ends."""

    __slots__ = ("_flow", "_memory", "size_bytes")

    def __init__(self, memory: "DecodedRequests", flow: Flow[Turn], size_bytes: int) -> None:
        self._memory = memory
        self._flow = flow
        self.size_bytes = size_bytes  # as much as it may take, before it is decoded

    def settle(self, size_bytes: int) -> None:
        """Note what it takes, now that it is decoded, and charge its client."""
        assert self.size_bytes, "a request whose client has left is not decoded: its task has ended"
        self._memory.settled(self._flow, size_bytes)
        unused_bytes, self.size_bytes = self.size_bytes - size_bytes, size_bytes
        self._memory.give_back(unused_bytes)

    def end(self) -> None:
        """Give everything back. It may be called again."""
        size_bytes, self.size_bytes = self.size_bytes, 0
        if size_bytes:
            self._memory.ended(self._flow, size_bytes)


class DecodedRequests:
    """Counts large requests that are decoded, and has others wait."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.used_bytes = 0
        self._queue: FairQueue[Turn] = FairQueue()

    @property
    def waiting_count(self) -> int:
        """Return how many clients wait for room."""
        return len(self._queue)

    async def room(self, client: tuple[str, str], frame_bytes: int) -> Room:
        """Wait until a request of so many bytes may be decoded."""
        size_bytes = taken_bytes(frame_bytes, frame_bytes // WIRE_BYTES_MIN)
        waits = self.used_bytes >= self.bytes_max or len(self._queue) > 0
        give_back = partial(self.give_back, RESERVED_BYTES)
        flow = await join_in_turn(self._queue, client, waits=waits, give_back=give_back)
        self.used_bytes += size_bytes - (RESERVED_BYTES if waits else 0)
        self._pass_on()
        return Room(self, flow, size_bytes)

    def settled(self, flow: Flow[Turn], size_bytes: int) -> None:
        """Charge a client for a request."""
        self._queue.charge(flow, size_bytes)

    def ended(self, flow: Flow[Turn], size_bytes: int) -> None:
        """Give back what a request took."""
        self._queue.leave(flow)
        self.give_back(size_bytes)

    def give_back(self, size_bytes: int) -> None:
        """Count bytes that are not taken any more, and let those begin for whom there is room."""
        self.used_bytes -= size_bytes
        self._pass_on()

    def _pass_on(self) -> None:
        """Give turns. How much each will take is known when it begins: until then it is what any may."""
        while self.used_bytes < self.bytes_max and give_turn(self._queue):
            self.used_bytes += RESERVED_BYTES


def taken_bytes(frame_bytes: int, elements: int) -> int:
    """Return what a request of so many bytes and elements takes."""
    return frame_bytes + min(elements, ELEMENTS_MAX) * ELEMENT_BYTES


RESERVED_BYTES: Final = taken_bytes(0, ELEMENTS_MAX)
