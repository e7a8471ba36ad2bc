"""The operator's own HTTP port: /healthz, /readyz, /metrics, and a page for people. Opened where KAVKA_LISTEN is set.

- `/healthz` is 200 unless this process should be started again: its main loop would not answer at all, or a turn of a
  cluster hangs, which no answer of Kafka's or the API server's takes so long for.
- `/readyz` is 200 once every resource was listed, or while another process acts and this one waits for its lease.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from kavka_kubernetes.console.page import Console
from kavka_kubernetes.figures import Figures

LISTEN = "KAVKA_LISTEN"
TURN_SECONDS_MAX = 1800.0
PORT_MAX = 65_535
TEXT = "text/plain; version=0.0.4; charset=utf-8"


class AddressError(ValueError):
    """KAVKA_LISTEN is no address; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address at which the port is opened."""

    host: str
    port: int

    @staticmethod
    def of(text: str) -> "Address":
        """The address in HOST:PORT; an empty host is every address. Raises AddressError."""
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
            raise AddressError(f'{LISTEN}: "{text}" is no address; write HOST:PORT, such as 0.0.0.0:8080')
        return Address(host.strip("[]"), int(port))


def healthy(figures: Figures) -> tuple[int, str]:
    """The code and the words of /healthz."""
    busy = figures.lanes.busy_seconds() if figures.lanes is not None else {}
    hanging = [f"{'/'.join(cluster)} for {age:.0f} s" for cluster, age in busy.items() if age > TURN_SECONDS_MAX]
    return (500, f"a turn hangs: {', '.join(sorted(hanging))}\n") if hanging else (200, "ok\n")


def ready(figures: Figures) -> tuple[int, str]:
    """The code and the words of /readyz."""
    if not figures.is_active:
        return 200, "another process acts; this one waits for the lease\n"
    return (200, "ok\n") if figures.listed_at else (503, "the resources are not listed yet\n")


def application(figures: Figures, *, has_console: bool = False) -> web.Application:
    """The pages; the console is for people, and names what there is."""

    async def healthz(_: web.Request) -> web.Response:
        code, words = healthy(figures)
        return web.Response(status=code, text=words)

    async def readyz(_: web.Request) -> web.Response:
        code, words = ready(figures)
        return web.Response(status=code, text=words)

    async def metrics(_: web.Request) -> web.Response:
        page = await asyncio.to_thread(figures.page)  # with very many resources it takes a while
        return web.Response(body=page, headers={"Content-Type": TEXT})

    pages = web.Application(client_max_size=1024)
    pages.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    if has_console:
        pages.add_routes(Console(figures).routes())
    return pages


@asynccontextmanager
async def opened(address: Address | None, figures: Figures, *, has_console: bool = False) -> AsyncIterator[None]:
    """Serve the pages meanwhile; without an address none. Raises OSError where it cannot be opened."""
    if address is None:
        yield
        return
    runner = web.AppRunner(application(figures, has_console=has_console), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, address.host or None, address.port).start()
        yield
    finally:
        await runner.cleanup()
