"""Sends what the console shows as server-sent events, to a bounded number of pages.

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
STREAMS_MAX: Final = 64
STREAMS_OF_ONE_MAX: Final = 16
"""Of one token."""
LOOK_SECONDS: Final = 1.0
HEARTBEAT_SECONDS: Final = 5.0
"""After so long without a change a comment is sent, which tells both sides that the other is still there."""
SEND_SECONDS_MAX: Final = 30.0


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

    _open: Counter[bytes] = field(default_factory=Counter)

    @contextmanager
    def place(self, visitor: bytes, of_one_max: int) -> Iterator[None]:
        """Keep a place for a stream of a visitor meanwhile. Raises RefusedError where none is left."""
        if self._open.total() >= STREAMS_MAX or self._open[visitor] >= of_one_max:
            raise RefusedError(503, "too many pages are open already; close some")
        self._open[visitor] += 1
        try:
            yield
        finally:
            self._open[visitor] -= 1
            self._open = +self._open

    def __len__(self) -> int:
        return self._open.total()


async def send(request: web.Request, look: Callable[[], Awaitable[Shown]]) -> web.StreamResponse:
    """Send what a look finds, now and whenever it is something else. A look raises RefusedError for who is let in no
    more: the stream ends, and the next request is told why.
    """
    answer, last, quiet_seconds = web.StreamResponse(headers=STREAM), b"", 0.0
    await answer.prepare(request)
    try:
        while True:
            shown = await look()
            if shown.rest != last:
                await _write(answer, b"data: " + shown.body + b"\n\n")
                last, quiet_seconds = shown.rest, 0.0
            elif quiet_seconds >= HEARTBEAT_SECONDS:
                await _write(answer, b": the same\n\n")
                quiet_seconds = 0.0
            await asyncio.sleep(LOOK_SECONDS)
            quiet_seconds += LOOK_SECONDS
    except (ConnectionResetError, RefusedError):
        return answer
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        return answer


async def _write(answer: web.StreamResponse, event: bytes) -> None:
    """Raise TimeoutError where a page does not read."""
    async with asyncio.timeout(SEND_SECONDS_MAX):
        await answer.write(event)
