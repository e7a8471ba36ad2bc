"""`/metrics`, `/healthz` and `/readyz` for probes and scrapers, on the port of `kavka.admin.listener`.

- `/healthz`: 200 while the loop answers, with who this is.
- `/readyz`: 200 when clients are served; else 503 and what stands in the way (docs/reference/probes.md).
- `/metrics`: Prometheus' text format.

Three pages without state need no framework: a request line is read, its headers are passed over, one answer is
written, the connection closes. That is 90 lines for what would cost 19 MiB and a third of a second of import
(docs/adr/0005). It speaks to probes inside a cluster and is no place for clients; every size, wait and count is
bounded. Where there are too many connections, the one that has not asked for the longest time makes room: a probe asks
at once. `/metrics` has a part of the connections at most, and of those the oldest makes room: a probe never waits
behind readers that do not read. Those that ask for `/metrics` together get one page.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from kavka_broker.logs import get
from kavka_broker.runtime.metric_sources import Sources

log = get("admin")

HEAD_BYTES_MAX: Final = 8192
TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class AdminBounds:
    """What the clients of the admin port may take."""

    connections_max: int = 32
    scrapes_max: int = 24  # connections of `/metrics` among them
    seconds_max: float = 10  # of a connection
    shared_seconds: float = 1.0  # the age of a page that is given to one more of those that ask together


BOUNDS: Final = AdminBounds()


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer."""

    status: HTTPStatus
    body: bytes
    content_type: str = TEXT


Render = Callable[[Sources], Coroutine[Any, Any, bytes]]


class AdminHttp:
    """The admin port of one broker. `pages` are those it serves; `render` makes the one of metrics."""

    def __init__(self, sources: Sources, bounds: AdminBounds = BOUNDS, render: Render | None = None) -> None:
        self._sources = sources
        self._render = render
        self._bounds = bounds
        self._server: asyncio.Server | None = None
        self.connections = 0
        self.silent: dict[asyncio.StreamWriter, None] = {}  # connections without a request so far, the oldest first
        self.scrapes: dict[asyncio.StreamWriter, None] = {}  # connections of `/metrics`, the oldest first
        self.rendering: asyncio.Task[bytes] | None = None  # the page for those that ask together
        self._rendered_seconds = 0.0  # when it was begun, by the loop
        self._started_ms = sources.clock.monotonic_ms()
        self.pages: dict[str, Callable[[], Awaitable[HttpAnswer]]] = {
            "/metrics": self._metrics,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
        }

    async def open(self, address: str) -> int:
        """Listen on `host:port`; returns the bound port. Raises OSError, or ValueError for a malformed address."""
        host, port = parse_address(address)
        self._server = await asyncio.start_server(self._serve, host or None, port, limit=HEAD_BYTES_MAX)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening. Answers under way are cut off."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.connections >= self._bounds.connections_max and not self._drop_one():
            writer.transport.abort()
            return
        self.connections += 1
        self.silent[writer] = None
        try:
            async with asyncio.timeout(self._bounds.seconds_max):
                method, answer = await self._answer(reader, writer)
                writer.writelines(frame(answer, with_body=method != "HEAD"))
                await writer.drain()
        except (TimeoutError, OSError, EOFError):
            pass  # the client is gone, or never finished its request
        finally:
            self.silent.pop(writer, None)
            self.scrapes.pop(writer, None)
            if not self.scrapes:
                self.rendering = None
            self.connections -= 1
            writer.close()

    def _drop_one(self) -> bool:
        """Make room for one more connection. False where every connection is being answered."""
        for waiting in (self.silent, self.scrapes):
            for writer in waiting:
                del waiting[writer]
                writer.transport.abort()
                return True
        return False

    def _join_scrapes(self, writer: asyncio.StreamWriter) -> None:
        """Count a connection of `/metrics`; the oldest makes room."""
        if len(self.scrapes) >= self._bounds.scrapes_max:
            oldest = next(iter(self.scrapes))
            del self.scrapes[oldest]
            oldest.transport.abort()
        self.scrapes[writer] = None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, HttpAnswer]:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return "", plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"more than {HEAD_BYTES_MAX} bytes")
        finally:
            self.silent.pop(writer, None)
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return "", plain(HTTPStatus.BAD_REQUEST, "this port speaks HTTP/1.1")
        method, target, _ = words
        page = self.pages.get(target.partition("?")[0])
        if page is None:
            return method, plain(HTTPStatus.NOT_FOUND, f"there is {', '.join(self.pages)}")
        if method not in {"GET", "HEAD"}:
            return method, plain(HTTPStatus.METHOD_NOT_ALLOWED, "write GET or HEAD")
        if page == self._metrics:
            self._join_scrapes(writer)
        return method, await page()

    async def _metrics(self) -> HttpAnswer:
        # Imported at the first scrape: a start has better things to do.
        from kavka_broker.runtime.metrics import CONTENT_TYPE, render

        work = render if self._render is None else self._render
        now_seconds, page = asyncio.get_running_loop().time(), self.rendering
        is_over = page is None or (page.done() and now_seconds - self._rendered_seconds >= self._bounds.shared_seconds)
        if page is None or is_over or (page.done() and (page.cancelled() or page.exception() is not None)):
            page = asyncio.create_task(work(self._sources), name="render metrics")
            self.rendering, self._rendered_seconds = page, now_seconds
        # Shielded: a client that leaves must not take the page from the others.
        return HttpAnswer(HTTPStatus.OK, await asyncio.shield(page), CONTENT_TYPE)

    async def _healthz(self) -> HttpAnswer:
        return as_json(HTTPStatus.OK, {"status": "alive", **self._who()})

    async def _readyz(self) -> HttpAnswer:
        obstacles = self._sources.health.obstacles
        if obstacles:
            return as_json(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "not ready", "because": obstacles, **self._who()})
        return as_json(HTTPStatus.OK, {"status": "ready", **self._who()})

    def _who(self) -> dict[str, object]:
        up_ms = self._sources.clock.monotonic_ms() - self._started_ms
        return {
            "node_id": self._sources.node_id,
            "cluster_id": self._sources.cluster_id,
            "up_seconds": round(up_ms / 1000, 1),
        }


def parse_address(address: str) -> tuple[str, int]:
    """Parse `127.0.0.1:9644`, `[::1]:9644` or `:9644` (every address). Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f'kavka.admin.listener: "{address}" is no address; write host:port, like 127.0.0.1:9644')
    return host.removeprefix("[").removesuffix("]"), int(port)


def plain(status: HTTPStatus, text: str) -> HttpAnswer:
    return HttpAnswer(status, f"{text}\n".encode())


def as_json(status: HTTPStatus, value: object) -> HttpAnswer:
    return HttpAnswer(status, json.dumps(value).encode() + b"\n", JSON)


def frame(answer: HttpAnswer, *, with_body: bool) -> list[bytes]:
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return [head.encode(), answer.body] if with_body else [head.encode()]
