"""The send side of a connection: buffers out, in order, without copying them.

Answers go to the socket as the pieces they are made of (`writev` of a header and slices of mapped log segments; the
kernel reads the page cache directly). Only when the socket is full does one bounded chunk go through the transport,
whose `resume_writing` then tells when to go on. A slow reader thus costs a chunk of memory and no CPU, however
large its answer is. What is small is joined while it waits: an answer of ten bytes would cost some 400 as an object of
its own, and the bound of a connection counts bytes.

A client that sends ahead often has several small requests in one receive. Their answers are gathered and leave with
one call: waking the client costs more than all the rest of a small request.
"""

import os
from asyncio import Transport
from collections import deque
from collections.abc import Callable, Sequence

from kavka_broker.request.answer_memory import Held

Buffer = bytes | bytearray | memoryview

PIECES_MAX = 512  # below the kernel's IOV_MAX of 1,024
CHUNK_BYTES_MAX = 128 * 1024
GATHERED_BYTES_MAX = 64 * 1024
SMALL_BYTES_MAX = 4 * 1024
JOINED_BYTES_MAX = 64 * 1024


class Outbox:
    """Answers that wait to be sent on one connection."""

    __slots__ = (
        "_descriptor",
        "_gathered",
        "_held",
        "_pieces",
        "_promised_bytes",
        "_small",
        "_transport",
        "sent_bytes",
        "waiting_bytes",
    )

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._pieces: deque[memoryview] = deque()
        self._small = bytearray()  # what is small at the end of what waits, behind `_pieces`
        self._gathered: list[Buffer] | None = None
        self._held: Held | None = None  # of long answers, what waits
        self._promised_bytes = 0  # of those that are written, and not sent yet
        self.waiting_bytes = 0
        self.sent_bytes = 0
        has_plain_socket = transport.get_extra_info("sslcontext") is None
        # `resume_writing` is to come only where something was held back. asyncio's TLS pauses from the limit on, also
        # with nothing: at 0 every second write would resume within itself, and one of a large answer nest.
        transport.set_write_buffer_limits(high=0 if has_plain_socket else 1, low=0)
        socket = transport.get_extra_info("socket") if has_plain_socket else None
        self._descriptor: int | None = socket.fileno() if socket is not None else None

    def gather(self) -> None:
        """Gather small answers from now until `flush`."""
        self._gathered = []

    def flush(self) -> None:
        """Send the gathered answers, and gather no more."""
        pieces, self._gathered = self._gathered, None
        if pieces:
            self._send(pieces)

    def send(self, pieces: Sequence[Buffer]) -> None:
        """Send as much as the socket takes now, keep the rest. A lost connection drops everything."""
        if self._gathered is None:
            self._send(pieces)
            return
        self._gathered += pieces
        if sum(map(len, pieces)) > GATHERED_BYTES_MAX or len(self._gathered) > PIECES_MAX:
            self.flush()
            self.gather()

    def _send(self, pieces: Sequence[Buffer]) -> None:
        # The transport takes whatever it is given: where it holds something back already, nothing more is handed to it.
        if self.waiting_bytes or self._transport.get_write_buffer_size() or self._transport.is_closing():
            self._keep(pieces)
            return
        size_bytes = sum(map(len, pieces))
        sent = self._write(pieces[:PIECES_MAX])
        if sent < size_bytes:
            self._keep(pieces)
            self._end_small()
            self._drop_sent(sent)
            self._hand_over()

    def promise(self, size_bytes: int, begin: Callable[[], Held]) -> None:
        """Count a long answer that is written, and will be sent."""
        if self._held is None:
            self._held = begin()
        self._promised_bytes += size_bytes
        self._held.grow(size_bytes)

    def fulfil(self, size_bytes: int) -> None:
        """Count of a long answer that has been sent only what waits of it."""
        self._promised_bytes -= size_bytes
        self._count_taken()

    def _count_taken(self) -> None:
        if self._held is not None:
            self._held.shrink(self.waiting_bytes + self._transport.get_write_buffer_size() + self._promised_bytes)

    def resume(self) -> None:
        """Go on with the rest: the transport has sent its chunk."""
        self._send_rest()
        self._count_taken()

    def _send_rest(self) -> None:
        self._end_small()
        while self._pieces:
            wanted = [self._pieces[i] for i in range(min(PIECES_MAX, len(self._pieces)))]
            sent = self._write(wanted)
            self._drop_sent(sent)
            if sent < sum(map(len, wanted)):
                self._hand_over()
                return

    def end(self) -> None:
        """Close the transport behind a client that has left. What it has not taken it will not take, and a transport
        that is closed while it holds something never ends.
        """
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    def clear(self) -> None:
        self._pieces.clear()
        self._small = bytearray()
        self.waiting_bytes = 0
        held, self._held = self._held, None  # it holds the connection
        if held is not None:
            held.shrink(0)

    def _write(self, pieces: Sequence[Buffer]) -> int:
        if self._descriptor is None or self._transport.get_write_buffer_size():
            return 0
        try:
            sent = os.writev(self._descriptor, pieces)
        except BlockingIOError:
            return 0
        except OSError:
            self._transport.abort()
            return 0
        self.sent_bytes += sent
        return sent

    def _keep(self, pieces: Sequence[Buffer]) -> None:
        for piece in pieces:
            self.waiting_bytes += len(piece)
            if len(piece) > SMALL_BYTES_MAX:
                self._end_small()
                self._pieces.append(memoryview(piece))
                continue
            self._small += piece
            if len(self._small) > JOINED_BYTES_MAX:
                self._end_small()

    def _end_small(self) -> None:
        """Have what is small wait as one piece."""
        if self._small:
            self._pieces.append(memoryview(self._small))
            self._small = bytearray()

    def _drop_sent(self, sent: int) -> None:
        self.waiting_bytes -= sent
        while sent:
            first = self._pieces[0]
            if sent < len(first):
                self._pieces[0] = first[sent:]
                return
            sent -= len(first)
            self._pieces.popleft()

    def _hand_over(self) -> None:
        """Give the transport chunks until it holds one back; it calls `resume_writing` when that is gone."""
        while self._pieces and not self._transport.is_closing():
            chunk = self._first_chunk()
            self._drop_sent(len(chunk))
            self.sent_bytes += len(chunk)
            self._transport.write(chunk)
            if self._transport.get_write_buffer_size():
                return

    def _first_chunk(self) -> Buffer:
        """Return the next bytes. Small pieces are joined: over TLS each would be a record of its own, and a call."""
        first = self._pieces[0]
        if len(first) >= CHUNK_BYTES_MAX or len(self._pieces) == 1:
            return first[:CHUNK_BYTES_MAX]
        parts, left = list[memoryview](), CHUNK_BYTES_MAX
        for piece in self._pieces:
            parts.append(piece[:left])
            left -= len(parts[-1])
            if not left:
                break
        return b"".join(parts)
