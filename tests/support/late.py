"""A relay in front of a server that delivers one connection late.

The kernel goes on sending for a process that was killed, and after a network was cut it may take minutes until the
other side has it all. `hold(api_key)` keeps back what comes from the first request with this key on, of the connection
on which it comes, even when its sender is gone; `deliver()` gives it to the server and returns the answer.
"""

import queue
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

READ_BYTES: Final = 65536
SECONDS_MAX: Final = 120.0
_START: Final = struct.Struct(">ih")


class LateRelay:
    """Between `address`, where it listens, and the server's port."""

    def __init__(self, port: int, server_port: int) -> None:
        self.port, self.server_port = port, server_port
        self._held_key: int | None = None
        self._is_held = threading.Event()
        self._is_open = threading.Event()
        self._is_open.set()
        self._late: tuple[socket.socket, socket.socket, bytes] | None = None
        self._answers_late: queue.Queue[bytes] = queue.Queue()
        self._links: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        self._run(self._accept)

    def hold(self, api_key: int) -> None:
        """Keep the next request of this kind, and all that follows it on its connection."""
        self._held_key = api_key

    def wait_held(self) -> None:
        assert self._is_held.wait(SECONDS_MAX), "no such request has come"

    def shut(self) -> None:
        """End every connection but the one that is held; new ones wait."""
        self._is_open.clear()
        for link in self._links:
            _end(*link)

    def open(self) -> None:
        """Let new connections through again."""
        self._is_open.set()

    def deliver(self) -> bytes:
        """Give the server what was held back; its answer to the first request of that, without the size."""
        assert self._late is not None, "nothing is held"
        _, there, data = self._late
        there.sendall(data)
        answer = self._answers_late.get(timeout=SECONDS_MAX)
        while len(answer) < 4 or len(answer) < 4 + struct.unpack_from(">i", answer)[0]:
            answer += self._answers_late.get(timeout=SECONDS_MAX)
        return answer[4:]

    def close(self) -> None:
        self._listener.close()
        self.open()
        for link in self._links:
            _end(*link)
        if self._late is not None:
            _end(*self._late[:2])

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            self._run(self._relay, here)

    def _relay(self, here: socket.socket) -> None:
        self._is_open.wait()
        try:
            there = socket.create_connection(("127.0.0.1", self.server_port))
        except OSError:
            here.close()
            return
        link = (here, there)
        self._links.append(link)
        if not self._is_open.is_set():  # shut meanwhile, which may not have seen this one
            _end(*link)
        self._run(self._answers, *link)
        with suppress(OSError):
            self._requests(*link)
        if not self._is_late(there):
            _end(*link)

    def _requests(self, here: socket.socket, there: socket.socket) -> None:
        data = b""
        while piece := here.recv(READ_BYTES):
            data += piece
            while len(data) >= _START.size:
                size, key = _START.unpack_from(data)
                if key == self._held_key:
                    self._keep(here, there, data)
                    return
                if len(data) < 4 + size:
                    break
                there.sendall(data[: 4 + size])
                data = data[4 + size :]

    def _keep(self, here: socket.socket, there: socket.socket, data: bytes) -> None:
        self._held_key = None
        self._links.remove((here, there))
        (size,) = struct.unpack_from(">i", data)
        while len(data) < 4 + size:
            data += here.recv(READ_BYTES)
        self._late = (here, there, data)
        self._is_held.set()

    def _is_late(self, there: socket.socket) -> bool:
        return self._late is not None and self._late[1] is there

    def _answers(self, here: socket.socket, there: socket.socket) -> None:
        with suppress(OSError):
            while piece := there.recv(READ_BYTES):
                if self._is_late(there):
                    self._answers_late.put(piece)
                else:
                    here.sendall(piece)


def _end(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
