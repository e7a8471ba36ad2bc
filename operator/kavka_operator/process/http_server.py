"""The operator's own HTTP ports: one for probes and Prometheus (KAVKA_LISTEN), one for people (KAVKA_CONSOLE).

Each is opened where its variable is set. The first answers /healthz, /readyz and /metrics, and names nothing that a
person has not named to Prometheus. The page for people names what there is, so it has an address of its own: that of
the pod itself, which the API server leads to, and at any other one it asks for a token of the API server.

- `/healthz` is 200 unless this process should be started again: its main loop would not answer at all, or a turn of a
  cluster hangs, which no answer of Kafka's or the API server's takes so long for.
- `/readyz` is 200 once every resource was listed, or while another process acts and this one waits for its lease.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from kavka_operator.process.console.page import Console, is_loopback
from kavka_operator.process.metrics import Figures

LISTEN, CONSOLE = "KAVKA_LISTEN", "KAVKA_CONSOLE"
EXAMPLES = {LISTEN: "0.0.0.0:8080", CONSOLE: "127.0.0.1:8081"}
YES = "true"
"""The value of KAVKA_CONSOLE that stands for its example."""
TURN_SECONDS_MAX = 1800.0
PORT_MAX = 65_535
TEXT = "text/plain; version=0.0.4; charset=utf-8"
CLOSE_SECONDS_MAX = 0.5
"""How long answers that are being sent may go on once a port is closed: pages that are open would never end."""


class AddressError(ValueError):
    """A variable is no address; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address at which a port is opened."""

    host: str
    port: int

    @staticmethod
    def of(text: str, variable: str = LISTEN) -> "Address":
        """The address in HOST:PORT, the value of a variable; an empty host is every address. Raises AddressError."""
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
            raise AddressError(f'{variable}: "{text}" is no address; write HOST:PORT, such as {EXAMPLES[variable]}')
        return Address(host.strip("[]"), int(port))

    @property
    def is_of_the_pod(self) -> bool:
        """Whether nothing but the pod itself, and what is forwarded to it, reaches the address."""
        return self.host == "localhost" or is_loopback(self.host)

    @staticmethod
    def of_environment(environment: Mapping[str, str], variable: str) -> "Address | None":
        """The address that a variable has; None where it has none. Raises AddressError."""
        text = environment.get(variable) or None
        if variable == CONSOLE and text == YES:
            text = EXAMPLES[CONSOLE]
        return None if text is None else Address.of(text, variable)


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


def application(figures: Figures) -> web.Application:
    """The pages for probes and Prometheus."""

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
    return pages


def console(shown: Console) -> web.Application:
    """Return the application with the page for people."""
    pages = web.Application(client_max_size=1024)
    pages.add_routes(shown.routes())
    pages.on_cleanup.append(shown.close)
    return pages


@asynccontextmanager
async def opened(address: Address | None, pages: web.Application) -> AsyncIterator[None]:
    """Serve the pages meanwhile; without an address none. Raises OSError where it cannot be opened."""
    if address is None:
        yield
        return
    runner = web.AppRunner(pages, access_log=None, handler_cancellation=True, shutdown_timeout=CLOSE_SECONDS_MAX)
    await runner.setup()
    try:
        await web.TCPSite(runner, address.host or None, address.port).start()
        yield
    finally:
        await runner.cleanup()
