"""What a connection has received: bytes in, whole frames out.

The loop receives straight into a buffer, and a frame is handed out as a view of it: a produced batch is not copied
between the socket and the log. The buffer is the one that all connections share (`request_memory`), unless something of
this connection waits: so a view is good only until its request was begun, and `give_back` takes what is left into a
buffer of the connection's own.

A promised size is checked against `socket.request.max.bytes` but takes no memory by itself: otherwise a few hundred
peers that send four bytes each would take it all.
"""

from struct import Struct

from kavka_broker.core.client_names import shortened
from kavka_broker.net.request_memory import AT_ONCE_BYTES_MAX, RequestMemory
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.framing import read_request_header
from kavka_broker.request.registry import FETCH, FETCH_BYTES_MAX

SIZE = Struct(">i")
KEY = Struct(">h")
KEY_END = SIZE.size + KEY.size
HEADER_BYTES_MIN = 8  # api key, version, correlation id
KEPT_BYTES_MIN = 128 * 1024
"""A shorter frame is copied: that takes less than a buffer of its own."""
LITTLE_BYTES = 4096
KEPT_SHARE = 4
"""A frame that is less than such a share of its buffer is copied, too."""


class Inbox:
    """Frames of one connection, of at most `frame_bytes_max` bytes each."""

    __slots__ = ("_end", "_is_own", "_memory", "_promised_bytes", "_start", "_view", "frame_bytes_max", "is_starved")

    def __init__(self, frame_bytes_max: int, memory: RequestMemory) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.is_starved = False  # lacks a buffer for its next frame, by the bound over all connections
        self._memory = memory
        self._view = memory.shared
        self._is_own = False
        self._promised_bytes = 0  # bytes counted in the bound
        self._start = self._end = 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes received and not yet handed out."""
        return self._end - self._start

    @property
    def has_room(self) -> bool:
        return not self._is_own or self._start > 0 or self._end < len(self._view)

    def room(self) -> memoryview:
        """Return the memory for the next bytes. Never empty, unless a frame waits to be taken."""
        if self._end == len(self._view) and self._start:
            self._move_to_front()
        return self._view[self._end :]

    def little_room(self) -> memoryview:
        """Return memory for a frame that has begun, or for little more than the beginning of one."""
        room = self.room()
        return room if self._is_own else room[:LITTLE_BYTES]

    def first_client_id(self) -> str | None:
        """Return the client id of the request that is next, as far as its header has come and can be read."""
        try:
            header, _ = read_request_header(self._view[self._start + SIZE.size : self._end])
        except ProtocolViolation:
            return None
        return shortened(header.client_id or "")

    def received(self, count: int) -> None:
        self._end += count

    def next_frame(self) -> memoryview | None:
        """Return the next whole frame without its size, or None. Raises ProtocolViolation for an impossible size."""
        start, end = self._start, self._end
        if end - start < SIZE.size:
            if start == end:
                self._start = self._end = 0
            return None
        (size,) = SIZE.unpack_from(self._view, start)
        if not HEADER_BYTES_MIN <= size <= self.frame_bytes_max:
            raise ProtocolViolation(self._describe(size))
        if end - start < SIZE.size + size:
            self._make_room(SIZE.size + size)
            return None
        body = start + SIZE.size
        self._start = body + size
        return self._view[body : body + size]

    def keep(self, frame: memoryview) -> memoryview:
        """Keep the frame that was handed out last as long as it is needed: a large one with the buffer that it came in,
        since a copy of 16 MiB holds the loop for some ten milliseconds.
        """
        if not self._is_own or len(frame) < max(KEPT_BYTES_MIN, len(self._view) // KEPT_SHARE):
            return memoryview(bytearray(frame))
        rest, promised_bytes = self._view[self._start : self._end], self._promised_bytes
        size_bytes = max(len(rest), KEY_END)
        self._view, self._promised_bytes = self._memory.take(size_bytes), size_bytes
        self._memory.promise(size_bytes)
        self._memory.take_back(promised_bytes)
        self._view[: len(rest)] = rest
        self._start, self._end = 0, len(rest)
        return frame

    def give_back(self) -> None:
        """Give the shared buffer back, and buffers in which nothing waits: every frame that may be begun was."""
        if self._start == self._end:
            self._start = self._end = 0
            self._give_back()
        elif not self._is_own:
            size_bytes = max(self._end - self._start, KEY_END)
            self._move_to(self._memory.take(size_bytes), 0 if self.is_starved else size_bytes)

    def close(self) -> None:
        self._start = self._end = 0
        self.is_starved = False
        self._give_back()

    def _give_back(self) -> None:
        if self._is_own:
            self._memory.give(self._view, self._promised_bytes)
            self._view, self._is_own, self._promised_bytes = self._memory.shared, False, 0

    def _move_to_front(self) -> None:
        waiting = self._end - self._start
        self._view[:waiting] = self._view[self._start : self._end]
        self._start, self._end = 0, waiting

    def _move_to(self, buffer: memoryview, promised_bytes: int) -> None:
        waiting = self._end - self._start
        buffer[:waiting] = self._view[self._start : self._end]
        self._memory.promise(promised_bytes)
        self._give_back()
        self._view, self._is_own, self._promised_bytes = buffer, True, promised_bytes
        self._start, self._end = 0, waiting

    def _make_room(self, needed_bytes: int) -> None:
        self.is_starved = False
        capacity = len(self._view)
        if self._is_own and needed_bytes <= capacity:
            if self._start + needed_bytes > capacity:
                self._move_to_front()
            return
        if self._is_own and self._end - self._start < capacity // 2:
            return  # the buffer grows with the bytes that arrive
        if self._promised_bytes < needed_bytes:
            self._memory.take_back(self._promised_bytes)
            self._promised_bytes = 0
            if self._end - self._start < KEY_END:
                return  # the frame's API decides
            self.is_starved = self._memory.is_full and not self._is_of_fetch(needed_bytes)
            if self.is_starved:
                return
        has_come = 2 * (self._end - self._start) >= AT_ONCE_BYTES_MAX
        size_bytes = needed_bytes if has_come else min(needed_bytes, AT_ONCE_BYTES_MAX)
        self._move_to(self._memory.take(size_bytes), needed_bytes)

    def _is_of_fetch(self, size_bytes: int) -> bool:
        """Whether the frame may be a follower's fetch: small, and answered without waiting for a client."""
        (key,) = KEY.unpack_from(self._view, self._start + SIZE.size)
        return key == FETCH and size_bytes <= SIZE.size + FETCH_BYTES_MAX

    def _describe(self, size: int) -> str:
        first = bytes(self._view[self._start : self._start + 3])
        if first[:2] == b"\x16\x03":
            return "the client speaks TLS to a listener that has none"
        if first in (b"GET", b"POS", b"HEA"):
            return "the client speaks HTTP to a Kafka listener"
        allowed = f"{HEADER_BYTES_MIN} to {self.frame_bytes_max} are allowed (socket.request.max.bytes)"
        return f"frame of {size} bytes; {allowed}"
