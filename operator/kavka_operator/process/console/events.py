"""Sends what the console shows: as server-sent events, to a bounded number of pages, or a document as a whole.

A page that has left, that reads nothing for a while, or whose visitor is let in no more, is sent nothing further.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from kavka_operator.process.console.access import RefusedError
from kavka_operator.web_page.assembly import HEADERS

STREAM: Final = {**HEADERS, "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}
"""The last header tells an nginx before the console to pass each event on at once."""
WHOLE: Final = {**HEADERS, "Content-Type": "application/json; charset=utf-8"}
STREAMS_MAX: Final = 64
STREAMS_OF_ONE_MAX: Final = 16
"""Of one visitor."""
LOOK_SECONDS: Final = 1.0
HEARTBEAT_SECONDS: Final = 5.0
"""After so long without a change a comment is sent, which tells both sides that the other is still there."""
SEND_SECONDS_MAX: Final = 30.0
PART_BYTES: Final = 128 * 1024
"""Of a document that is written at a time: a connection copies what is not taken at once."""


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """Seconds between two looks, until a comment is sent, and for which a page may read nothing."""

    look_seconds: float = LOOK_SECONDS
    heartbeat_seconds: float = HEARTBEAT_SECONDS
    send_seconds_max: float = SEND_SECONDS_MAX


TIMING: Final = StreamTiming()


@dataclass(frozen=True, slots=True)
class Shown:
    """Overview that a page shows, as JSON: the moment at which it was made, and all else."""

    at: str
    rest: bytes
    """A JSON object with at least one field."""

    @property
    def body(self) -> bytes:
        """Both as one JSON object."""
        return b'{"at": "' + self.at.encode() + b'", ' + self.rest[1:]


@dataclass(slots=True)
class Streams:
    """The streams that are open."""

    streams_max: int = STREAMS_MAX
    of_one_max: int = STREAMS_OF_ONE_MAX
    _open: Counter[bytes] = field(default_factory=Counter)

    @contextmanager
    def place(self, visitor: bytes, *, is_of_all: bool) -> Iterator[None]:
        """Keep a place for a stream of a visitor meanwhile, or of all that are let in alike. Raises RefusedError where
        none is left.
        """
        of_one_max = self.streams_max if is_of_all else self.of_one_max
        if self._open.total() >= self.streams_max or self._open[visitor] >= of_one_max:
            raise RefusedError(503, "too many pages are open already; close some")
        self._open[visitor] += 1
        try:
            yield
        finally:
            self._open[visitor] -= 1
            self._open = +self._open

    def __len__(self) -> int:
        return self._open.total()


async def send(
    request: web.Request, look: Callable[[], Awaitable[Shown]], timing: StreamTiming = TIMING
) -> web.StreamResponse:
    """Send what a look finds, now and whenever it is something else. A look raises RefusedError for who is let in no
    more: the stream ends, and the next request is told why.
    """
    answer, last, quiet_seconds = web.StreamResponse(headers=STREAM), b"", 0.0
    await answer.prepare(request)
    try:
        while True:
            shown = await look()
            if shown.rest != last:
                await _write(answer, b"data: " + shown.body + b"\n\n", timing)
                last, quiet_seconds = shown.rest, 0.0
            elif quiet_seconds >= timing.heartbeat_seconds:
                await _write(answer, b": the same\n\n", timing)
                quiet_seconds = 0.0
            await asyncio.sleep(timing.look_seconds)
            quiet_seconds += timing.look_seconds
    except (ConnectionResetError, RefusedError):
        return answer
    except TimeoutError:
        _let_go(request)
        return answer


async def send_whole(request: web.Request, body: bytes, timing: StreamTiming = TIMING) -> web.StreamResponse:
    """Send a JSON document. A browser that has not taken it in time is let go: it would keep it in memory."""
    answer = web.StreamResponse(headers=WHOLE)
    answer.content_length = len(body)
    try:
        async with asyncio.timeout(timing.send_seconds_max):
            await answer.prepare(request)
            for begin in range(0, len(body), PART_BYTES):
                await answer.write(memoryview(body)[begin : begin + PART_BYTES])
            await answer.write_eof()
    except ConnectionResetError:
        pass
    except TimeoutError:
        _let_go(request)
    return answer


def _let_go(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


async def _write(answer: web.StreamResponse, event: bytes, timing: StreamTiming) -> None:
    """Raise TimeoutError where a page does not read."""
    async with asyncio.timeout(timing.send_seconds_max):
        await answer.write(event)
