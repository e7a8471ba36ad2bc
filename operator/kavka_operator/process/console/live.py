"""The places on the operator's page that show what is in a cluster: records, groups, clients, users.

Kafka is asked with the operator's own credentials, and so only for visitors who may `get` that subresource of the
KafkaCluster (`DataDoor`), wherever the console is: a port-forward is no such right. A stream asks about the right at
each look, so that one taken away ends it. A cluster is looked at while some page shows it, a few clusters at a time;
records are read apart (`record_reader`).
"""

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from aiohttp import web

from kavka_operator.domain.access import Security
from kavka_operator.domain.cluster_view import View
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.broker_metrics import url_of
from kavka_operator.kafka.offsets_and_lag import Onlooker
from kavka_operator.live_views.access import access_document
from kavka_operator.live_views.background import aside
from kavka_operator.live_views.model import Look
from kavka_operator.live_views.records import query_of
from kavka_operator.live_views.sources import ClusterSource, Source
from kavka_operator.live_views.views import cluster_view
from kavka_operator.live_views.watch import Watch
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.process.console.access import DataDoor, RefusedError
from kavka_operator.process.console.events import Shown
from kavka_operator.process.console.record_reader import ANSWER_BYTES_MAX, read_apart
from kavka_operator.process.console.shares import Places, Questions, Watches

RECORDS, ACCESS = "records", "access"
SUBRESOURCES: Final = {
    RECORDS: "records",
    "groups": "groups",
    "shares": "groups",
    "clients": "clients",
    "transactions": "clients",
    ACCESS: "users",
}
"""The subresource of a KafkaCluster that a visitor has to be allowed to get, by the place."""
INTERNAL_PREFIX: Final = "__"
INTERNAL_RIGHTS: Final = ("groups", "clients", "users")
"""What the records of internal topics tell of: members and their hosts, transactional ids, and principals."""
INTERNAL: Final = "records of a topic whose name begins with __ take all four rights"
PANELS: Final = (RECORDS,)
ASKED: Final = (ACCESS,)
FIELDS: Final = ("topic", "at", "where", "partition", "key", "value", "count")
CLUSTER: Final = re.compile(r"[a-z0-9.-]{1,63}/[a-z0-9.-]{1,253}")
ITEM_LENGTH_MAX: Final = 1_000
EVERY_SECONDS: Final = 5.0
LOOKS_MAX: Final = 2
"""Rates need two; those of a large cluster are large."""
WATCHES_MAX: Final = 8
QUESTIONS_AT_ONCE_MAX: Final = 2
QUESTIONS_WAITING_MAX: Final = 16
MADE_MAX: Final = 8
NOT_HERE: Final = "this operator does not look after the cluster now"
TOO_MANY_RULES: Final = "the users and access rules are too many for this page; use Kafka's own kafka-acls.sh"
NO_BROKER: Final = "no broker of the cluster runs"

Document = dict[str, Any]
ViewOf = Callable[[ClusterKey], View | None]
ReadRecords = Callable[[str, Security, Document], Awaitable[bytes]]
AskAccess = Callable[[str, Security], Document]


@dataclass(frozen=True, slots=True)
class LiveBounds:
    """Bounds of what visitors make the operator ask and keep."""

    every_seconds: float = EVERY_SECONDS
    watches_max: int = WATCHES_MAX
    waiting_max: int = QUESTIONS_WAITING_MAX


BOUNDS: Final = LiveBounds()


@dataclass(frozen=True, slots=True)
class LivePlace:
    """A place on the page that is asked of Kafka: a view of a cluster, or of an item of it."""

    cluster: ClusterKey
    view: str
    item: str | None = None

    @property
    def name(self) -> str:
        return "/".join(self.cluster)


def bearer(request: web.Request) -> tuple[str, str]:
    """The Authorization that a visitor sends, and the address that sends it."""
    return request.headers.get("Authorization", ""), request.remote or ""


def live_place(request: web.Request, view: str) -> LivePlace | None:
    """The place that is asked for; None where it is none. Raises RefusedError where no cluster may have the name."""
    if view not in SUBRESOURCES:
        return None
    cluster, item = request.query.get("cluster", ""), request.query.get("item")
    if CLUSTER.fullmatch(cluster) is None or len(item or "") > ITEM_LENGTH_MAX:
        raise RefusedError(404, "no cluster has such a name: write NAMESPACE/NAME")
    namespace, _, name = cluster.partition("/")
    return LivePlace((namespace, name), view, item)


class LaneSource:
    """Looks at a cluster by the addresses and credentials with which the operator looks after it at that moment."""

    def __init__(self, cluster: ClusterKey, view_of: ViewOf) -> None:
        self._cluster, self._view_of = cluster, view_of
        self._reached: tuple[str, Security, tuple[str, ...]] | None = None
        self._source: ClusterSource | None = None

    def take(self) -> Look:
        """The cluster now. Raises AdminError where it cannot be asked."""
        view = reached(self._view_of, self._cluster)
        now = view.bootstrap, view.security, tuple(url_of(address) for address in view.metrics.values())
        if self._source is None or now != self._reached:
            self.close()
            bootstrap, security, urls = self._reached = now
            connect = partial(_onlooker, security)
            self._source = ClusterSource("/".join(self._cluster), bootstrap, urls, connect)
        return self._source.take()

    @property
    def is_connected(self) -> bool:
        """Whether it holds connections."""
        return self._source is not None

    def close(self) -> None:
        """Let go of the connections."""
        source, self._source = self._source, None
        if source is not None:
            source.close()


def _onlooker(security: Security, bootstrap: str) -> Onlooker:
    return Onlooker(bootstrap, security)


def reached(view_of: ViewOf, cluster: ClusterKey) -> View:
    """The view with a cluster's addresses. Raises AdminError where it cannot be asked."""
    view = view_of(cluster)
    if view is None:
        raise AdminError(NOT_HERE, retriable=True)
    if view.lacking is not None:
        raise AdminError(view.lacking)
    if not view.bootstrap:
        raise AdminError(NO_BROKER, retriable=True)
    return view


@dataclass
class LivePlaces:
    """Looks into clusters for visitors that `door` lets in. `view_of` gives the addresses and credentials of one."""

    door: DataDoor
    view_of: ViewOf
    read: ReadRecords = read_apart
    ask_access: AskAccess = access_document
    make_source: Callable[[ClusterKey], Source] | None = None
    bounds: LiveBounds = BOUNDS
    questions: Questions = field(init=False)
    watches: Watches = field(init=False)
    _made: OrderedDict[LivePlace, tuple[Watch, int, str, Shown]] = field(default_factory=OrderedDict)
    _places: Places = field(default_factory=lambda: Places(QUESTIONS_AT_ONCE_MAX))

    def __post_init__(self) -> None:
        self.questions = Questions(self.bounds.waiting_max)
        self.watches = Watches(self._watch, self.bounds.watches_max)

    async def check(self, request: web.Request, place: LivePlace) -> None:
        """Raise RefusedError unless the visitor may see the place."""
        await self.door.check(*bearer(request), place.cluster, SUBRESOURCES[place.view])

    async def _question(self, request: web.Request, place: LivePlace) -> Document:
        """The question about records of a topic, once it is certain that its visitor may see the place.

        Raises RefusedError unless the visitor may see it, and BadQueryError.
        """
        await self.check(request, place)
        fields = {name: request.query[name] for name in FIELDS if name in request.query}
        if query_of(fields).topic.startswith(INTERNAL_PREFIX):
            for subresource in INTERNAL_RIGHTS:
                try:
                    await self.door.check(*bearer(request), place.cluster, subresource)
                except RefusedError as error:
                    raise RefusedError(error.status, f"{INTERNAL}: {error}") from error
        return fields

    async def close(self) -> None:
        """Look no more."""
        await self.watches.close()

    @asynccontextmanager
    async def watched(self, visitor: bytes, cluster: ClusterKey) -> AsyncIterator[Watch]:
        """Look at a cluster meanwhile, for a visitor who may. Raises RefusedError where the operator does not look
        after it, or too many are looked at already.
        """
        if self.view_of(cluster) is None:
            raise RefusedError(404, NOT_HERE)
        with self.watches.page(cluster, visitor) as watch:
            async with watch.watched():
                yield watch

    def _watch(self, cluster: ClusterKey) -> Watch:
        make = partial(self.make_source or self._source, cluster)
        return Watch(make, self.bounds.every_seconds, looks_max=LOOKS_MAX)

    def _source(self, cluster: ClusterKey) -> Source:
        return LaneSource(cluster, self.view_of)

    async def shown(self, request: web.Request, place: LivePlace, watch: Watch) -> Shown:
        """The place as the last look shows it. Raises RefusedError where the visitor may not see it (any more)."""
        await self.check(request, place)
        seen = watch, watch.version, watch.trouble
        known = self._made.get(place)
        if known is not None and known[:3] == seen and watch.history is not None:
            return known[3]
        made = Shown(_now(), await asyncio.to_thread(_body, place, watch, seen[2]))
        self._made[place] = *seen, made
        self._made.move_to_end(place)
        while len(self._made) > MADE_MAX:
            self._made.popitem(last=False)
        return made

    @asynccontextmanager
    async def records(self, request: web.Request) -> AsyncIterator[bytes]:
        """The records that the visitor asks for, as JSON. The question counts until they are taken.

        Raises RefusedError, AdminError and BadQueryError.
        """
        place = live_place(request, RECORDS)
        assert place is not None, "it is one"
        await self._question(request, place)
        visitor = await self.door.visitors.find(*bearer(request))
        with self.questions.turn(visitor):
            give_back = await self._places.take(visitor)
            try:
                fields = await self._question(request, place)  # rights again: others may have taken minutes
                view = reached(self.view_of, place.cluster)
                found = await self.read(view.bootstrap, view.security, fields)
            finally:
                give_back()
            yield found

    @asynccontextmanager
    async def access(self, request: web.Request) -> AsyncIterator[bytes]:
        """The users and access rules, as `records`. Raises RefusedError and AdminError."""
        place = live_place(request, ACCESS)
        assert place is not None, "it is one"
        await self.check(request, place)
        visitor = await self.door.visitors.find(*bearer(request))
        with self.questions.turn(visitor):
            give_back = await self._places.take(visitor)
            try:
                await self.check(request, place)  # again, as for records
            except BaseException:
                give_back()
                raise
            # The thread has its place until it ends, also where the browser has left.
            answer = asyncio.ensure_future(aside(partial(self._access, place.cluster)))
            answer.add_done_callback(partial(_leave, give_back))
            yield await asyncio.shield(answer)

    def _access(self, cluster: ClusterKey) -> bytes:
        view = reached(self.view_of, cluster)
        found = _json(self.ask_access(view.bootstrap, view.security))
        if len(found) > ANSWER_BYTES_MAX:
            raise AdminError(TOO_MANY_RULES)
        return found


def _leave(give_back: Callable[[], None], answer: "asyncio.Future[Any]") -> None:
    give_back()
    if not answer.cancelled():
        answer.exception()  # looked at, so that nothing is logged where its browser has left


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _body(place: LivePlace, watch: Watch, trouble: str) -> bytes:
    document = {"view": place.view, "trouble": trouble, "notice": "", **_document(place, watch)}
    return _json(document)


def _json(document: Document) -> bytes:
    return json.dumps(document, allow_nan=False, ensure_ascii=False).encode(errors="replace")


def _document(place: LivePlace, watch: Watch) -> Document:
    history = watch.history
    if history is None:
        return {"isAwaited": True}
    view = "topics" if place.view == RECORDS else place.view
    try:
        return placed(cluster_view(history, place.name, view, place.item), place)
    except LookupError:
        return {"isGone": True}


def placed(shown: Document, place: LivePlace) -> Document:
    """Return what `kavka console` shows, with the links of this page. The groups that read a topic are left out: they
    take a right of their own.
    """
    sheets = [{**sheet, "rows": [_linked(row) for row in sheet["rows"]]} for sheet in shown["sheets"]]
    if place.view == RECORDS:
        sheets = [sheet for sheet in sheets if sheet["name"] != "readers"]
    return {**shown, "sheets": sheets}


def _linked(row: Document) -> Document:
    link = row.get("link")
    if link is None:
        return row
    cluster, view, *items = link
    if view == "topics":
        return {**row, "link": [cluster, RECORDS, *items]}
    return row if view == "groups" else {name: value for name, value in row.items() if name != "link"}
