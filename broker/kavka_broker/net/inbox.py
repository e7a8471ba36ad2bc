"""The receive buffer of a connection: bytes in, whole frames out.

The loop receives straight into this buffer, and a frame is handed out as a view of it: a produced batch is not copied
between the socket and the log. A view is therefore good only until the next receive.

The buffer starts small, since most connections are idle, grows with what has arrived of a frame, and is given back by
`shrink`. A promised size is checked against `socket.request.max.bytes` but takes no memory by itself: otherwise a few
hundred peers that send four bytes each would take it all.
"""

from struct import Struct

from kavka_broker.protocol.errors import ProtocolViolation

SIZE = Struct(">i")
INITIAL_BYTES = 64 * 1024
RETAINED_BYTES_MAX = 4 * 1024 * 1024
GROWTH = 4
HEADER_BYTES_MIN = 8  # api key, version, correlation id


class Inbox:
    """Frames of one connection, of at most `frame_bytes_max` bytes each."""

    __slots__ = ("_buffer", "_end", "_start", "_view", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._allocate(INITIAL_BYTES)
        self._start = self._end = 0

    @property
    def waiting_bytes(self) -> int:
        """Received and not yet handed out."""
        return self._end - self._start

    @property
    def is_full(self) -> bool:
        return self._end == len(self._buffer)

    def room(self) -> memoryview:
        """Where the next bytes go. Never empty, unless a frame is waiting that nobody takes."""
        if self._end == len(self._buffer) and self._start:
            self._move_to_front()
        return self._view[self._end :]

    def received(self, count: int) -> None:
        self._end += count

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size, or None. Raises ProtocolViolation for an impossible size."""
        start, end = self._start, self._end
        if end - start < SIZE.size:
            if start == end:
                self._reset()
            return None
        (size,) = SIZE.unpack_from(self._buffer, start)
        if not HEADER_BYTES_MIN <= size <= self.frame_bytes_max:
            raise ProtocolViolation(self._describe(size))
        if end - start < SIZE.size + size:
            self._make_room(SIZE.size + size)
            return None
        body = start + SIZE.size
        self._start = body + size
        return self._view[body : body + size]

    def shrink(self) -> None:
        """Give a grown buffer back when nothing is in it."""
        if self._start == self._end and len(self._buffer) > INITIAL_BYTES:
            self._allocate(INITIAL_BYTES)
            self._start = self._end = 0

    def _reset(self) -> None:
        self._start = self._end = 0
        if len(self._buffer) > RETAINED_BYTES_MAX:
            self._allocate(INITIAL_BYTES)

    def _allocate(self, size_bytes: int) -> None:
        self._buffer = bytearray(size_bytes)
        self._view = memoryview(self._buffer)

    def _move_to_front(self) -> None:
        waiting = self._end - self._start
        self._view[:waiting] = self._view[self._start : self._end]
        self._start, self._end = 0, waiting

    def _make_room(self, needed_bytes: int) -> None:
        if self._start + needed_bytes <= len(self._buffer):
            return
        if needed_bytes <= len(self._buffer):
            self._move_to_front()
            return
        self._move_to_front()
        if self._end * 2 >= len(self._buffer):
            received = self._view[: self._end]
            self._allocate(min(1 << (needed_bytes - 1).bit_length(), len(self._buffer) * GROWTH))
            self._view[: self._end] = received

    def _describe(self, size: int) -> str:
        first = bytes(self._view[self._start : self._start + 3])
        if first[:2] == b"\x16\x03":
            return "the client speaks TLS to a listener that has none"
        if first in (b"GET", b"POS", b"HEA"):
            return "the client speaks HTTP to a Kafka listener"
        allowed = f"{HEADER_BYTES_MIN} to {self.frame_bytes_max} are allowed (socket.request.max.bytes)"
        return f"frame of {size} bytes; {allowed}"
