"""What a web server answers, as a whole and by a deadline.

The timeout of `urlopen` bounds each wait for bytes: a server that sends a byte every two seconds holds its caller for
days. Here a timer cuts the connections when the time is over, so the thread that waits for the answer always ends.
"""

import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Timer
from time import monotonic
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import HTTPHandler, HTTPSHandler, Request, build_opener

Connect = Callable[..., socket.socket]


def answer_of(asked: str | Request, *, seconds_max: float, bytes_max: int) -> bytes:
    """The beginning of what a server answers to a request, or to GET of a URL.

    Raises OSError, a TimeoutError among them, and ValueError.
    """
    with Deadline(seconds_max) as deadline:
        data = b""
        problem: OSError | None = None
        try:
            with build_opener(Http(deadline.connect), Https(deadline.connect)).open(asked) as answer:
                data = bytes(answer.read(bytes_max))
        except HTTPError as error:
            error.close()
            problem = OSError(str(error))
        except OSError as error:
            problem = error
        except HTTPException as error:
            problem = OSError(f"no answer of HTTP: {error}")
        if deadline.is_over():
            problem = TimeoutError(f"no whole answer within {seconds_max:g} seconds")
    if problem is not None:
        raise problem from None
    return data


class Deadline:
    """The time that one answer may take, over all the connections that it needs."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds
        self._links: list[socket.socket] = []
        self._timer = Timer(seconds, self._cut)
        self._timer.daemon = True

    def is_over(self) -> bool:
        """Whether the time has passed."""
        return monotonic() >= self._end

    def connect(self, address: tuple[str, int], *_: object) -> socket.socket:
        """Connect to one of the addresses of a host. Raises OSError."""
        problem: OSError = ConnectionError(f"{address[0]} has no address")
        for family, kind, protocol, _name, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            if self.is_over():
                break
            link = socket.socket(family, kind, protocol)
            link.settimeout(max(self._end - monotonic(), 0.001))
            try:
                link.connect(place)
            except OSError as error:
                link.close()
                problem = error
                continue
            self._links.append(link.dup())  # TLS takes the socket itself over
            if not self.is_over():  # otherwise the timer may not have seen it
                return link
            link.close()
        raise problem

    def _cut(self) -> None:
        for link in self._links:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()
        for link in self._links:
            link.close()


class Http(HTTPHandler):
    """Opens pages over connections that `connect` makes."""

    def __init__(self, connect: Connect) -> None:
        super().__init__()
        self._connect = connect

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(connection_by, HTTPConnection, self._connect), req)


class Https(HTTPSHandler):
    """Opens pages over connections that `connect` makes, and TLS."""

    def __init__(self, connect: Connect) -> None:
        super().__init__()
        self._connect = connect

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(connection_by, HTTPSConnection, self._connect), req)


def connection_by(kind: type[HTTPConnection], connect: Connect, host: str, **options: Any) -> HTTPConnection:
    """A connection of HTTP over a socket that `connect` makes."""
    connection = kind(host, **options)
    connection._create_connection = connect  # type: ignore[attr-defined]
    return connection
