"""The console's answers: the page of `kavka console`; what a place on it shows, as events; all that it shows, once.

The page may run its own script and style, known by their hashes, and ask this port; nothing else is let in, whatever a
name or a message of a resource holds. What a place shows is made in a thread, and once a second at most for all who may
see the same, however many look.

It is never open. At an address of the pod itself it answers requests that name that address, which a port-forward
brings: the API server has let those in. At any other address a visitor brings a token of the API server. What is in a
cluster takes a token, and a right of its own, at either (`live`).
"""

import asyncio
import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from ipaddress import ip_address
from typing import Any

from aiohttp import web

from kavka_operator.kafka.admin import AdminError
from kavka_operator.live_views.records import BadQueryError
from kavka_operator.platform.kubernetes.live.resource_cache import cluster_of, key_of_document
from kavka_operator.process.console import live
from kavka_operator.process.console.access import Door, RefusedError, Rights
from kavka_operator.process.console.events import TIMING, Shown, Streams, StreamTiming, send, send_whole
from kavka_operator.process.console.live import LivePlace, LivePlaces, bearer, live_place
from kavka_operator.process.console.overview import overview
from kavka_operator.process.console.views import VIEWS, view_document
from kavka_operator.process.metrics import Figures
from kavka_operator.web_page.assembly import HEADERS, Offered, WebPage, assemble

FRESH_SECONDS = 1.0
MADE_APART = 10.0
"""Seconds for which an overview is shown, for each second that it took: one of very many resources takes a while."""
PLACES_MAX = 16
"""Of which what was made is kept, for visitors with different rights; each may be half a megabyte."""
PAGE, EVENTS, DATA = "/", "/events", "/console.json"
RECORDS, ACCESS = f"/{live.RECORDS}", f"/{live.ACCESS}"


Place = tuple[str | None, str]
"""A cluster, or none for all of them, and a view."""
CLUSTERS: Place = (None, "")
NOWHERE: Place = ("", "")
CLUSTER_LENGTH_MAX = 63 + 1 + 253
"""Of a namespace, a slash and a name."""
WHOLE: Place = (None, DATA)
"""Stands for the overview of everything, which is no place on the page."""


@cache
def source(*, asks_for_token: bool, is_live: bool = False) -> WebPage:
    """The page as it is sent; a live one has places that are asked of Kafka, and which always take a token."""
    login = "token" if asks_for_token else "guarded" if is_live else ""
    if not is_live:
        return assemble(Offered(tuple(VIEWS), login=login))
    guarded = tuple(live.SUBRESOURCES)
    return assemble(Offered((*VIEWS, *guarded), live.ASKED, live.PANELS, login, guarded))


@dataclass(slots=True)
class Console:
    """The handlers. `clock` counts seconds; `door` lets visitors in by their tokens, and without one the console is at
    an address of the pod itself. `live` are the places that are asked of Kafka, which let visitors in by themselves.
    """

    figures: Figures
    clock: Callable[[], float] = time.monotonic
    door: Door | None = None
    live: LivePlaces | None = None
    streams: Streams = field(default_factory=Streams)
    timing: StreamTiming = TIMING
    fresh_seconds: float = FRESH_SECONDS
    made_apart: float = MADE_APART
    _made: OrderedDict[tuple[Rights | None, Place], tuple[float, Shown]] = field(default_factory=OrderedDict)
    _named: tuple[float, frozenset[str]] = (-math.inf, frozenset())
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def routes(self) -> list[web.RouteDef]:
        """The places where they answer."""
        found = [web.get(PAGE, self._page), web.get(EVENTS, self._events, allow_head=False), web.get(DATA, self._data)]
        if self.live is None:
            return found
        asked = {RECORDS: self.live.records, ACCESS: self.live.access}
        return [*found, *(web.get(path, partial(self._asked, ask), allow_head=False) for path, ask in asked.items())]

    async def close(self, _: web.Application) -> None:
        """Let go of the connections to clusters."""
        if self.live is not None:
            await self.live.close()

    async def _page(self, request: web.Request) -> web.Response:
        if self.door is None and (words := foreign_host(request.host)):
            return _refused(403, words)
        page = source(asks_for_token=self.door is not None, is_live=self.live is not None)
        return web.Response(text=page.text, content_type="text/html", charset="utf-8", headers=page.headers)

    async def _data(self, request: web.Request) -> web.Response:
        try:
            shown = await self._shown(request, WHOLE)
        except RefusedError as error:
            return _refused(error.status, str(error))
        return web.Response(body=shown.body, content_type="application/json", charset="utf-8", headers=HEADERS)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send a place as events. The rights are asked for at each look, so that one taken away ends them."""
        try:
            if self.live is not None and (asked := live_place(request, request.query.get("view", ""))) is not None:
                return await self._live_events(request, self.live, asked)
            place = _place_of(request)
            await self._rights(request)
            visitor = b"" if self.door is None else await self.door.visitors.find(*bearer(request))
            with self.streams.place(visitor, is_of_all=self.door is None):
                return await send(request, partial(self._shown, request, place), self.timing)
        except RefusedError as error:
            return _refused(error.status, str(error))

    async def _live_events(self, request: web.Request, places: LivePlaces, place: LivePlace) -> web.StreamResponse:
        """Send a place that is asked of Kafka as events. Raises RefusedError."""
        self._check_host(request)
        await places.check(request, place)
        visitor = await places.door.visitors.find(*bearer(request))
        with self.streams.place(visitor, is_of_all=False):
            async with places.watched(visitor, place.cluster) as watch:
                return await send(request, partial(places.shown, request, place, watch), self.timing)

    async def _asked(
        self, ask: Callable[[web.Request], AbstractAsyncContextManager[bytes]], request: web.Request
    ) -> web.StreamResponse:
        """Answer a question to Kafka, which has its turn until the browser has taken the answer."""
        try:
            self._check_host(request)
            async with ask(request) as found:
                return await send_whole(request, found, self.timing)
        except RefusedError as error:
            return _refused(error.status, str(error))
        except BadQueryError as error:
            return _refused(400, str(error))
        except AdminError as error:
            return _refused(502, str(error))

    def _check_host(self, request: web.Request) -> None:
        """Raise RefusedError where another site asks at an address of the pod itself."""
        if self.door is None and (words := foreign_host(request.host)):
            raise RefusedError(403, words)

    async def _shown(self, request: web.Request, place: Place) -> Shown:
        """The place for the visitor that asks. Raises RefusedError."""
        return await self.overview(await self._rights(request), place)

    async def _rights(self, request: web.Request) -> Rights | None:
        """The rights of who asks; None where the API server has let all in. Raises RefusedError."""
        self._check_host(request)
        if self.door is None:
            return None
        return await self.door.rights(*bearer(request), self._namespaces)

    def _namespaces(self) -> set[str]:
        return {str(key_of_document(document)[1]) for document in self.figures.documents()}

    async def overview(self, rights: Rights | None, place: Place = WHOLE) -> Shown:
        """The place for those with these rights, made again once it is old."""
        async with self._lock:
            if place[0] is not None and place[0] not in await self._clusters():
                place = NOWHERE  # a visitor may name very many that are none
            kept = rights, place
            fresh_until, known = self._made.get(kept, (-math.inf, None))
            if (began := self.clock()) < fresh_until and known is not None:
                return known
            made = await asyncio.to_thread(self._made_now, rights, place)
            ended = self.clock()
            self._made[kept] = ended + max(self.fresh_seconds, self.made_apart * (ended - began)), made
            self._made.move_to_end(kept)
            while len(self._made) > PLACES_MAX:
                self._made.popitem(last=False)
            return made

    async def _clusters(self) -> frozenset[str]:
        """The clusters that resources belong to, looked up again once that is old."""
        fresh_until, names = self._named
        if (began := self.clock()) >= fresh_until:
            names = await asyncio.to_thread(self._clusters_now)
            ended = self.clock()
            self._named = ended + max(self.fresh_seconds, self.made_apart * (ended - began)), names
        return names

    def _clusters_now(self) -> frozenset[str]:
        return frozenset("/".join(cluster_of(document)) for document in self.figures.documents())

    def _made_now(self, rights: Rights | None, place: Place) -> Shown:
        figures = self.figures
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        about = {"isActive": figures.is_active, "isListed": bool(figures.listed_at)}
        documents = figures.documents()
        shown = documents if rights is None else rights.shown(documents)
        found = overview(shown) if place == WHOLE else self._placed(shown, *place)
        return Shown(at, json.dumps({**about, **found}, allow_nan=False).encode())

    def _placed(self, shown: Iterable[Mapping[str, Any]], cluster: str | None, view: str) -> dict[str, Any]:
        about = {"view": view, "trouble": "", "notice": self._notice()}
        try:
            return {**about, **view_document(shown, cluster, view)}
        except LookupError:
            return {**about, "isGone": True}

    def _notice(self) -> str:
        if not self.figures.is_active:
            return "Another process acts; this one waits and sees nothing."
        return "" if self.figures.listed_at else "The resources are not listed yet."


def _place_of(request: web.Request) -> Place:
    """The place that is asked for. What names none is always the same one, so that a visitor's text is kept nowhere."""
    cluster, view = request.query.get("cluster"), request.query.get("view", "")
    if cluster is None:
        return CLUSTERS
    return (cluster, view) if view in VIEWS and len(cluster) <= CLUSTER_LENGTH_MAX else NOWHERE


def foreign_host(host: str) -> str:
    """The reason for which a request that names this host is refused; empty where it is an address of the machine
    itself. A page elsewhere whose name leads to a forwarded port (DNS rebinding) names another.
    """
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name == "localhost" or is_loopback(name):
        return ""
    return "this page is reached by kubectl port-forward, as http://127.0.0.1:PORT/"


def is_loopback(host: str) -> bool:
    """Whether a host is an address of the machine itself."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _refused(status: int, words: str) -> web.Response:
    more = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return web.Response(status=status, text=f"{words}\n", headers={**HEADERS, **more})
