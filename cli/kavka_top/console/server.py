"""Serves the console: the page, its events, records, users, access rules, why a client is limited, audit answers.

It listens on 127.0.0.1 alone; `guard.py` says who is let in. Nothing here writes, neither to Kafka nor to a file,
unless the console was started to: then `quota_edits.py` applies ClientQuotas, and nothing else does.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from secrets import token_urlsafe
from typing import Any, Final, TypeVar

from aiohttp import web

from kavka_cli.local_clusters import is_running
from kavka_cli.output import CommandError
from kavka_cli.schema_registry.decoding import Decoder
from kavka_cli.target import Target
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.offsets_and_lag import Onlooker
from kavka_operator.live_views.access import access_document
from kavka_operator.live_views.background import aside
from kavka_operator.live_views.records import BadQueryError, query_of, read_records
from kavka_operator.live_views.sources import ClusterSource, Source
from kavka_operator.live_views.views import CLUSTERS, ROLL, TITLES, cluster_view, clusters_view
from kavka_operator.live_views.watch import LATE_SECONDS, Watch
from kavka_operator.platform.local.layout import Layout
from kavka_operator.web_page.assembly import HEADERS, Offered, WebPage, assemble
from kavka_operator.web_page.documents import Document
from kavka_operator.web_page.rolls import roll_view, unknown_roll
from kavka_top.console.audit_answers import AuditAnswers, NoSuchQuestionError, UnreadableAnswersError, no_answers
from kavka_top.console.explanations import explain_client
from kavka_top.console.guard import HOST, PAGE, address_of, guard
from kavka_top.console.quota_edits import BODY_BYTES_MAX, QuotaEdits
from kavka_top.console.quota_resources import OtherDiffError, RefusedEditError, cluster_of

T = TypeVar("T")
LOGGER: Final = logging.getLogger(__name__)
EVENTS, RECORDS, ACCESS, EXPLAIN, AUDIT = "/events", "/records", "/access", "/explain", "/audit"
SUBSCRIBERS_MAX: Final = 32
QUESTIONS_AT_ONCE_MAX: Final = 4
"""Of those that need a connection of their own, about one cluster."""
HEARTBEAT_SECONDS: Final = 5.0
EVENT_STREAM: Final = {**HEADERS, "Content-Type": "text/event-stream; charset=utf-8"}
OFFERED: Final = Offered(
    (*TITLES, "access", ROLL, "audit"), asked=("access", "audit"), panels=("topics", "clients", "quotas")
)


@cache
def page() -> WebPage:
    """The page as it is sent."""
    return assemble(OFFERED)


@dataclass
class Console:
    """The handlers. `targets` are the clusters, by their names; `key` is what a browser must know, and `decoder`
    has the registry of their schemas. `layouts` are those that run on this machine, whose ClientQuotas may be changed
    where the console is `writable`, and `answers` are those of the audit trail.
    """

    targets: Mapping[str, Target]
    every_seconds: float = 2.0
    make_source: Callable[[Target], Source] = field(default_factory=lambda: _source)
    key: str = field(default_factory=lambda: token_urlsafe(16))
    decoder: Decoder | None = None
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    writable: bool = False
    answers: Sequence[AuditAnswers] = ()
    read: Callable[..., Document] = read_records
    subscribers_max: int = SUBSCRIBERS_MAX
    questions_at_once_max: int = QUESTIONS_AT_ONCE_MAX
    heartbeat_seconds: float = HEARTBEAT_SECONDS
    late_seconds: float = LATE_SECONDS
    token: str = field(init=False)
    """What a change needs; empty where nothing may be changed."""
    watches: dict[str, Watch] = field(init=False)
    _subscribers: int = 0
    _places: dict[str, asyncio.Semaphore] = field(init=False)

    def __post_init__(self) -> None:
        self.token = token_urlsafe(32) if self.writable else ""
        self.watches = {
            name: Watch(partial(self.make_source, found), self.every_seconds, late_seconds=self.late_seconds)
            for name, found in self.targets.items()
        }
        self._places = {name: asyncio.Semaphore(self.questions_at_once_max) for name in self.targets}

    def application(self) -> web.Application:
        """The places where they answer."""
        pages = web.Application(
            client_max_size=BODY_BYTES_MAX if self.writable else 1024, middlewares=[guard(self.key, self.token)]
        )
        handlers = {
            PAGE: self._page, EVENTS: self._events, RECORDS: self._records, ACCESS: self._access,
            EXPLAIN: self._explain, AUDIT: self._audit,
        }  # fmt: skip
        pages.add_routes([web.get(path, handler) for path, handler in handlers.items()])
        edits = QuotaEdits(self.layouts, self.watches, self.asked, is_writable=self.writable, token=self.token)
        pages.add_routes(edits.routes())
        pages.on_cleanup.append(self._close)
        return pages

    async def _close(self, _: web.Application) -> None:
        for watch in self.watches.values():
            await watch.close()

    async def _page(self, _: web.Request) -> web.Response:
        found = page()
        return web.Response(text=found.text, content_type="text/html", charset="utf-8", headers=found.headers)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send what a place on the page shows, now and whenever it changes, as server-sent events."""
        cluster, view, item = (request.query.get(name) for name in ("cluster", "view", "item"))
        if cluster is not None:
            self._target(request)
        if self._subscribers >= self.subscribers_max:
            raise web.HTTPServiceUnavailable(text=f"{self.subscribers_max} pages are open already; close some\n")
        self._subscribers += 1
        try:
            if cluster is None:
                return await self._send_clusters(request)
            shown = partial(self._document, cluster, view or "", item)
            return await _send_events(request, [self.watches[cluster]], shown, self.heartbeat_seconds)
        finally:
            self._subscribers -= 1

    async def _send_clusters(self, request: web.Request) -> web.StreamResponse:
        return await _send_events(request, list(self.watches.values()), self._clusters, self.heartbeat_seconds)

    def _clusters(self) -> Document:
        found = {
            name: (self.targets[name].bootstrap, watch.history, watch.trouble) for name, watch in self.watches.items()
        }
        return {**clusters_view(found), "view": CLUSTERS, "trouble": "", "clusters": list(self.targets)}

    def _document(self, cluster: str, view: str, item: str | None) -> Document:
        watch = self.watches[cluster]
        about: Document = {"view": view, "trouble": watch.trouble, "clusters": list(self.targets)}
        if view == ROLL:
            return {**about, **self._roll(cluster)}
        if watch.history is None:
            return {**about, "isAwaited": True}
        try:
            shown = cluster_view(watch.history, cluster, view, item)
        except LookupError:
            return {**about, "isGone": True}
        if view == "quotas" and item is not None:
            shown["series"] = watch.usage_of(item)
        return {**about, **shown}

    def _roll(self, cluster: str) -> Document:
        layout = self.layouts.get(cluster)
        found = None if layout is None else cluster_of(layout)
        if layout is None or found is None:
            return unknown_roll()
        return roll_view(found, is_running=is_running(layout))

    async def _records(self, request: web.Request) -> web.Response:
        target = self._target(request)
        try:
            query = query_of(request.query)
        except BadQueryError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error
        has_left = threading.Event()
        try:
            ask = partial(self.read, target.bootstrap, target.security, query, has_left.is_set, self.decoder)
            return _json(await self.asked(request, ask))
        finally:
            has_left.set()

    async def _access(self, request: web.Request) -> web.Response:
        target = self._target(request)
        return _json(await self.asked(request, partial(access_document, target.bootstrap, target.security)))

    async def _explain(self, request: web.Request) -> web.Response:
        target, names = self._target(request), [request.query.get(name, "") for name in ("user", "client")]
        return _json({"text": await self.asked(request, partial(explain_client, target, *names))})

    async def _audit(self, request: web.Request) -> web.Response:
        """Send the answers of the audit trail of a cluster, or the rows of one."""
        target, item = self._target(request), request.query.get("item")
        try:
            return _json(await self.asked(request, partial(self._answers, target, item)))
        except NoSuchQuestionError as error:
            raise web.HTTPNotFound(text="there is no such question\n") from error

    def _answers(self, target: Target, item: str | None) -> Document:
        """Raise NoSuchQuestionError, AdminError and UnreadableAnswersError."""
        if not self.answers:
            return no_answers("", ())
        cluster_id = _cluster_id(target)
        found = next((answers for answers in self.answers if answers.cluster_id == cluster_id), None)
        if found is None:
            return no_answers(cluster_id, self.answers)
        return found.all((target.name, AUDIT.removeprefix("/"))) if item is None else found.one(item)

    def _target(self, request: web.Request) -> Target:
        name = request.query.get("cluster", "")
        if name not in self.targets:
            raise web.HTTPNotFound(text=f'there is no cluster "{name}" here\n')
        return self.targets[name]

    async def asked(self, request: web.Request, ask: Callable[[], T]) -> T:
        """The answer to a question that needs a thread. The thread has its place until it ends, also where the browser
        that has asked is gone.
        """
        places = self._places[request.query["cluster"]]
        await places.acquire()
        answer = asyncio.ensure_future(aside(ask))
        answer.add_done_callback(partial(_leave, places))
        try:
            return await asyncio.shield(answer)
        except (NoSuchQuestionError, RefusedEditError, OtherDiffError):
            raise
        except (CommandError, AdminError, UnreadableAnswersError) as error:
            raise web.HTTPBadGateway(text=f"{error}\n") from error
        except Exception as error:
            LOGGER.exception("a question of the console's page was not answered")
            raise web.HTTPBadGateway(text=f"unexpected error: {error!r}\n") from error


def _leave(places: asyncio.Semaphore, answer: "asyncio.Future[Any]") -> None:
    places.release()
    if not answer.cancelled():
        answer.exception()  # looked at, so that nothing is logged where its browser is gone


def _json(found: Document) -> web.Response:
    body = json.dumps(found, allow_nan=False, ensure_ascii=False).encode(errors="replace")
    return web.Response(body=body, content_type="application/json", charset="utf-8", headers=HEADERS)


async def _send_events(
    request: web.Request, watches: Sequence[Watch], shown: Callable[[], Document], heartbeat_seconds: float
) -> web.StreamResponse:
    """Send the document now and after each look that changes it, until the page is left."""
    answer, woken, last = web.StreamResponse(headers=EVENT_STREAM), asyncio.Event(), b""
    await answer.prepare(request)
    tasks = [asyncio.create_task(_wake(watch, woken, heartbeat_seconds)) for watch in watches]
    try:
        while True:
            woken.clear()
            # A thread: that of very many rows takes a while, and others wait meanwhile.
            data = await asyncio.to_thread(_as_data, shown)
            await answer.write(_event(data) if data != last else b": the same\n\n")
            last = data
            await woken.wait()
    except ConnectionResetError:
        return answer  # the page was left
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _wake(watch: Watch, woken: asyncio.Event, heartbeat_seconds: float) -> None:
    """Set the event after each look, and now and then without one, which tells whether the page is still there."""
    async with watch.watched():
        version = watch.version
        while True:
            version = await watch.changed_since(version, heartbeat_seconds)
            woken.set()


def _as_data(shown: Callable[[], Document]) -> bytes:
    return json.dumps(shown(), allow_nan=False, ensure_ascii=False).encode(errors="replace")


def _event(data: bytes) -> bytes:
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return b"event: shown\nid: " + at.encode() + b"\ndata: " + data + b"\n\n"


def _source(target: Target) -> ClusterSource:
    connect = partial(_onlooker, target)
    return ClusterSource(target.name, target.bootstrap, target.urls, connect)


def _onlooker(target: Target, bootstrap: str) -> Onlooker:
    return Onlooker(bootstrap, target.security)


def _cluster_id(target: Target) -> str:
    """The id of a cluster. Raises AdminError."""
    client = Onlooker(target.bootstrap, target.security)
    try:
        return client.members().cluster_id
    finally:
        client.close()


async def serve(console: Console, port: int, tell: Callable[[str], Any]) -> None:
    """Serve the clusters until this is cancelled; `tell` gets the address. Raises OSError where the port is taken."""
    pages = console.application()
    runner = web.AppRunner(pages, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port)
        await site.start()
        tell(address_of(int(runner.addresses[0][1]), console.key))
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
