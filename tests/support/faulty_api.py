"""A real API server with something wrong in front of it: a proxy that delays, refuses, loses or ages what goes through.

The answers that it makes up itself are those that a real API server gives: a Conflict, an Expired list or watch. The
others are the API server's own.
"""

import asyncio
import json
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from tests.support.control_plane import TOKEN, ControlPlane, Json
from tests.support.servers import free_port

READY_SECONDS_MAX = 60.0
LINE_MAX = 1 << 23
"""Bytes of an event of a watch, which is an object on a line."""
READS = {"GET", "HEAD"}
PASSED_ON = ("Authorization", "Content-Type", "Accept")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came, and the how manieth of its method and path it is, from 1. Dry runs are counted apart: else
    each write behind one would meet the same fault for good.
    """

    method: str
    path: str
    query: dict[str, str]
    count: int

    @property
    def is_write(self) -> bool:
        return self.method not in READS and "dryRun" not in self.query

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query


@dataclass(frozen=True, slots=True)
class Said:
    """An answer."""

    status: int
    body: bytes
    content: str = "application/json"


class Fault:
    """What is wrong; by itself nothing."""

    delay_seconds = 0.0
    """How late everything is answered."""
    event_delay_seconds = 0.0
    """How late an event of a watch is passed on, after the one before."""

    async def hold_up(self, asked: Asked) -> None:
        """Wait before a request is passed on."""
        await asyncio.sleep(self.delay_seconds)

    def query(self, asked: Asked) -> dict[str, str]:
        """The query that the API server gets."""
        return asked.query

    def instead(self, asked: Asked) -> Said | None:
        """An answer in the place of the API server's, which then hears nothing."""
        return None

    def after(self, asked: Asked, said: Said) -> Said | None:
        """What becomes of an answer; None where it is lost on its way."""
        return said

    def ends_watch(self, asked: Asked) -> Said | None:
        """The last event of a watch that has just passed one on; None where it goes on."""
        return None


def refusal(code: int, reason: str, message: str) -> Json:
    """A Status as API servers answer it."""
    parts = {"status": "Failure", "reason": reason, "code": code, "message": message}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, **parts}


def refused(code: int, reason: str, message: str) -> Said:
    """An answer that refuses."""
    return Said(code, json.dumps(refusal(code, reason, message)).encode())


class Slow(Fault):
    """Every answer takes its time."""

    delay_seconds = 0.3


class Conflicts(Fault):
    """Every other write of each object meets a newer version."""

    def instead(self, asked: Asked) -> Said | None:
        if asked.is_write and asked.count % 2:
            return refused(409, "Conflict", "the object has been modified; please apply your changes to the latest")
        return None


class Lost(Fault):
    """Every other write of each object is done, and nobody hears of it."""

    def after(self, asked: Asked, said: Said) -> Said | None:
        return None if asked.is_write and asked.count % 2 else said


class Expired(Fault):
    """Lists come in pages of one, and of some the second is too old; so is each watch behind its first event."""

    EXPIRED = refusal(410, "Expired", "The resourceVersion for the provided list is too old.")

    def __init__(self) -> None:
        self.pages: Counter[str] = Counter()

    def query(self, asked: Asked) -> dict[str, str]:
        return {**asked.query, "limit": "1"} if "limit" in asked.query else asked.query

    def instead(self, asked: Asked) -> Said | None:
        if "continue" in asked.query:
            self.pages[asked.path] += 1
            if self.pages[asked.path] % 20 == 1:
                return Said(410, json.dumps(self.EXPIRED).encode())
        return None

    def ends_watch(self, asked: Asked) -> Said | None:
        return Said(200, json.dumps({"type": "ERROR", "object": self.EXPIRED}).encode() + b"\n")


class Stale(Fault):
    """Whoever watches hears of each change late, as from a cache that lags behind. Lists are as of now."""

    event_delay_seconds = 2.0


@dataclass
class FaultyApi:
    """The proxy: a server with the API server's own certificate, in a thread of its own."""

    plane: ControlPlane
    fault: Fault
    port: int = field(default_factory=free_port)
    counts: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """Requests by method, path, and whether they were dry runs."""
    faults: int = 0
    """How many requests and watches something was done to."""

    def kubeconfig(self, path: Path) -> Path:
        """Write how to ask by this way."""
        self.plane.write_kubeconfig(path, TOKEN)
        found = yaml.safe_load(path.read_text())
        found["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self.port}"
        path.write_text(yaml.safe_dump(found))
        return path

    async def serve(self, is_ready: threading.Event, is_over: asyncio.Event) -> None:
        """Pass requests on until it is over."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.plane.certificate, self.plane.directory / "server.key")
        trusted = ssl.create_default_context(cafile=str(self.plane.certificate))
        connector = aiohttp.TCPConnector(ssl=trusted, limit=0)
        patient = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=patient, read_bufsize=LINE_MAX) as session:
            app = web.Application(client_max_size=1 << 24)

            async def handle(request: web.Request) -> web.StreamResponse:
                return await self.handle(session, request)

            app.router.add_route("*", "/{path:.*}", handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=context).start()
            is_ready.set()
            await is_over.wait()
            await runner.cleanup()

    async def handle(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        """Pass one request on, or do what is wrong to it."""
        counted = request.method, request.path, "dryRun" in request.query
        self.counts[counted] += 1
        asked = Asked(request.method, request.path, dict(request.query), self.counts[counted])
        if self.fault.delay_seconds:
            self.faults += 1
        await self.fault.hold_up(asked)
        if (said := self.fault.instead(asked)) is None:
            headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
            url = f"https://127.0.0.1:{self.plane.port}{request.path}"
            more: dict[str, Any] = {"params": self.fault.query(asked), "headers": headers}
            async with session.request(request.method, url, data=await request.read() or None, **more) as answer:
                if asked.is_watch and answer.status == 200:
                    return await self.pass_events(asked, request, answer)
                given = Said(answer.status, await answer.read(), answer.content_type)
            said = self.fault.after(asked, given)
            if said == given:
                return web.Response(status=given.status, body=given.body, content_type=given.content)
        self.faults += 1
        if said is None:
            assert request.transport is not None, "it is there while its request is handled"
            request.transport.abort()
            return web.Response(status=500)
        return web.Response(status=said.status, body=said.body, content_type=said.content)

    async def pass_events(
        self, asked: Asked, request: web.Request, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        """Pass the events of a watch on, one on a line."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        with suppress(ConnectionError):  # whoever watched has gone
            while line := await answer.content.readline():
                if self.fault.event_delay_seconds:
                    self.faults += 1
                    await asyncio.sleep(self.fault.event_delay_seconds)
                await response.write(line)
                if (last := self.fault.ends_watch(asked)) is not None:
                    self.faults += 1
                    await response.write(last.body)
                    break
        return response


@contextmanager
def faulty(plane: ControlPlane, fault: Fault) -> Iterator[FaultyApi]:
    """An API server behind a fault, for as long as it is wanted."""
    made, is_ready, is_over = FaultyApi(plane, fault), threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        await made.serve(is_ready, is_over)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)  # which ends what is still asked
    thread.start()
    try:
        assert is_ready.wait(READY_SECONDS_MAX), "the proxy does not serve"
        yield made
    finally:
        loops[0].call_soon_threadsafe(is_over.set)
        thread.join(READY_SECONDS_MAX)
