"""Web servers that answer in their own way, whatever they are asked."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

PAUSE_SECONDS = 0.02
Answer = Callable[[socket.socket, threading.Event], None]


@contextmanager
def serving(answer: Answer, scheme: str = "http") -> Iterator[str]:
    """The address of a server that answers each connection in this way, whatever is asked."""
    has_ended = threading.Event()

    def serve(listening: socket.socket) -> None:
        while not has_ended.is_set():
            accepted, _ = listening.accept()
            with accepted, suppress(OSError):
                if not has_ended.is_set():
                    answer(accepted, has_ended)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        port = listening.getsockname()[1]
        try:
            yield f"{scheme}://127.0.0.1:{port}/keys"
        finally:
            has_ended.set()
            socket.create_connection(("127.0.0.1", port)).close()
            thread.join()


def dripping(head: bytes, drop: bytes) -> Answer:
    def answer(accepted: socket.socket, has_ended: threading.Event) -> None:
        accepted.sendall(head)
        while not has_ended.wait(PAUSE_SECONDS):
            accepted.sendall(drop)

    return answer


def whole(*parts: bytes) -> Answer:
    def answer(accepted: socket.socket, _: threading.Event) -> None:
        accepted.recv(4096)
        accepted.sendall(b"".join(parts))

    return answer
