"""Bytes on a socket: what a client library would never send, and what came back.

Reading gives a frame, or None where the peer closed the connection; silence is a TimeoutError, never a guess.
"""

import socket
import struct
from collections.abc import Iterator
from typing import Self

ANSWER_SECONDS_MAX = 60.0
LOOK_SECONDS_MAX = 2.0  # of a look that is repeated until it is answered
API_VERSIONS = 18
METADATA = 3


class Connection:
    """One TCP connection to a broker."""

    def __init__(
        self, address: tuple[str, int], seconds_max: float = ANSWER_SECONDS_MAX, source: tuple[str, int] | None = None
    ) -> None:
        self.socket = socket.create_connection(address, seconds_max, source)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frame(self, body: bytes) -> None:
        self.send(struct.pack(">i", len(body)) + body)

    def request(self, api_key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes | None:
        """Send a request with the header of its version; the answer behind its correlation id, or None when closed."""
        self.send_frame(header(api_key, version, flexible=flexible) + body)
        return self.receive()

    def receive(self) -> bytes | None:
        """The next frame, or None when the peer closed the connection."""
        size = self._receive_exactly(4)
        return None if size is None else self._receive_exactly(struct.unpack(">i", size)[0])

    def receive_size(self) -> int:
        """How large the next frame is; the frame itself is not read. Raises ConnectionResetError where none comes."""
        size = self._receive_exactly(4)
        if size is None:
            raise ConnectionResetError("closed without an answer")
        return int(struct.unpack(">i", size)[0])

    def is_closed(self) -> bool:
        """Wait for the peer to close; True unless it sends something instead."""
        try:
            return not self.socket.recv(1)
        except ConnectionResetError:
            return True

    def _receive_exactly(self, size: int) -> bytes | None:
        received = bytearray()
        while len(received) < size:
            try:
                piece = self.socket.recv(size - len(received))
            except ConnectionResetError:
                return None
            if not piece:
                return None
            received += piece
        return bytes(received)


def header(api_key: int, version: int, *, correlation_id: int = 7, flexible: bool = False) -> bytes:
    """A request header, with the empty tagged fields of version 2 where it is flexible."""
    return struct.pack(">hhih4s", api_key, version, correlation_id, 4, b"wire") + (b"\x00" if flexible else b"")


def brokers_registered(address: tuple[str, int], seconds_max: float = ANSWER_SECONDS_MAX) -> int:
    """How many brokers Metadata names: more than none means that the broker serves."""
    return len(brokers_named(address, seconds_max))


def brokers_named(address: tuple[str, int], seconds_max: float = ANSWER_SECONDS_MAX) -> list[int]:
    """The ids of the brokers that Metadata (version 1, no topics) names, which are those that are not fenced."""
    with Connection(address, seconds_max) as connection:
        answer = connection.request(METADATA, 1, struct.pack(">i", 0))
    return [] if answer is None else list(_brokers(answer, 4))


def _brokers(answer: bytes, at: int) -> Iterator[int]:
    """The ids in an array of brokers: each is followed by a host, a port and a rack, which may be null."""
    (count,) = struct.unpack_from(">i", answer, at)
    at += 4
    for _ in range(count):
        broker_id, host_bytes = struct.unpack_from(">ih", answer, at)
        at += 6 + host_bytes + 4
        (rack_bytes,) = struct.unpack_from(">h", answer, at)
        at += 2 + max(0, rack_bytes)
        yield broker_id
