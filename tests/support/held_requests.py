"""A proxy before a broker that holds back requests of some kinds until it is let go: the broker never sees them before.

All other requests pass, so whoever asks through it finds a broker that is well.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from tests.support.wire import ANSWER_SECONDS_MAX

PIECE_BYTES: Final = 65_536
ACCEPT_SECONDS: Final = 0.2


@dataclass(slots=True)
class HeldRequests:
    """`keys` are the API keys of requests that are held as long as `is_open` is not set; `held` counts these."""

    target: tuple[str, int]
    keys: tuple[int, ...]
    is_open: threading.Event = field(default_factory=threading.Event)
    held: int = 0
    _sockets: list[socket.socket] = field(default_factory=list)

    def serve(self, listener: socket.socket, is_over: threading.Event) -> None:
        """Take connections until it is over."""
        listener.settimeout(ACCEPT_SECONDS)
        while not is_over.is_set():
            with suppress(TimeoutError):
                client, _ = listener.accept()
                threading.Thread(target=self._pass, args=(client,), name="held requests", daemon=True).start()
        for one in self._sockets:
            end(one)

    def _pass(self, client: socket.socket) -> None:
        """Pass one connection on, until either side ends it."""
        try:
            broker = socket.create_connection(self.target, ANSWER_SECONDS_MAX)
        except OSError:
            end(client)
            return
        for one in (client, broker):
            one.settimeout(None)
            self._sockets.append(one)
        threading.Thread(target=copy, args=(broker, client), name="held answers", daemon=True).start()
        with suppress(OSError):
            while head := exactly(client, 6):
                rest = exactly(client, int.from_bytes(head[:4], "big") - 2)
                if int.from_bytes(head[4:], "big") in self.keys and not self.is_open.is_set():
                    self.held += 1
                    self.is_open.wait()
                broker.sendall(head + rest)
        end(client)
        end(broker)


def exactly(connection: socket.socket, count: int) -> bytes:
    """So many bytes, or none where the connection ends before."""
    found = bytearray()
    while len(found) < count:
        piece = connection.recv(count - len(found))
        if not piece:
            return b""
        found += piece
    return bytes(found)


def copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE_BYTES):
            target.sendall(piece)
    end(target)


def end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def held_requests(proxy: HeldRequests, port: int) -> Iterator[HeldRequests]:
    """Serve in a thread of its own until the end of the block."""
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=proxy.serve, args=(listener, is_over), name="holds requests", daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.is_open.set()
            is_over.set()
            thread.join()
