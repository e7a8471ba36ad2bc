"""Serves the resources of quotas and, where the console may write, takes changes of them.

A console that only reads has no request that writes. Where it may, a change needs the page's own origin and the token
of this start, which `guard.py` hands out, comes as JSON of bounded size, and names the diff that it was shown.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aiohttp import web

from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain import units
from kavka_operator.domain.quota_entities import as_meant, entity_text
from kavka_operator.live_views.views import NEW
from kavka_operator.live_views.watch import Watch
from kavka_operator.platform.local.layout import Layout
from kavka_operator.web_page.assembly import HEADERS
from kavka_operator.web_page.documents import Document
from kavka_top.console.guard import refusal_of_change, refused
from kavka_top.console.quota_resources import TEXT_BYTES_MAX, LocalQuotas, OtherDiffError, RefusedEditError

RESOURCE, STATE, DIFFERENCE, APPLY = "/quota", "/quota/state", "/quota/difference", "/quota/apply"
DELETION, DELETE = "/quota/deletion", "/quota/delete"
"""The difference that a deletion makes, and the deletion; the text of a request is the name of the quota."""
BODY_BYTES_MAX: Final = 2 * TEXT_BYTES_MAX
"""Of a request: JSON may write a character in several."""
NO_RESOURCES: Final = (
    "This console knows the cluster by its addresses alone. Its quotas become resources with `kavka export`, and are"
    " edited here where the cluster is one of `kavka up`."
)
READS_ONLY: Final = "This console only reads. `kavka console --write` lets the page apply what you edit."

Ask = Callable[[web.Request, Callable[[], Document]], Awaitable[Document]]
"""Runs a question in a thread of its own."""
Change = Callable[[LocalQuotas, str, str], Document]
"""What a request does with its text and the sum of the diff that was shown."""


@dataclass(slots=True)
class QuotaEdits:
    """The handlers. `layouts` are the clusters whose resources are on this machine; `ask` bounds what runs at once."""

    layouts: Mapping[str, Layout]
    watches: Mapping[str, Watch]
    ask: Ask
    is_writable: bool
    token: str

    def routes(self) -> list[web.RouteDef]:
        """The places where they answer."""
        reading = [web.get(RESOURCE, self._resource), web.get(STATE, self._state)]
        writing: Mapping[str, Change] = {
            DIFFERENCE: lambda quotas, text, _: quotas.difference(text),
            APPLY: lambda quotas, text, shown: quotas.apply(text, shown),
            DELETION: lambda quotas, name, _: quotas.deletion(name),
            DELETE: lambda quotas, name, shown: quotas.delete(name, shown),
        }
        handlers = [web.post(path, partial(self._changed, change)) for path, change in writing.items()]
        return [*reading, *handlers] if self.is_writable else reading

    async def _resource(self, request: web.Request) -> web.Response:
        """Send the resource of an entity."""
        cluster, text = self._cluster(request), request.query.get("entity", "")
        layout = self.layouts.get(cluster)
        if layout is None:
            return _json({"text": "", "name": None, "note": NO_RESOURCES, "isWritable": False})
        entity, limits = (None, {}) if text == NEW else self._limits(cluster, text)
        found = await self.ask(request, partial(LocalQuotas(layout).resource, entity, limits))
        if not self.is_writable:
            return _json({**found, "isWritable": False, "why": READS_ONLY})
        return _json({**found, "isWritable": True})

    async def _state(self, request: web.Request) -> web.Response:
        quotas = self._quotas(request)
        return _json(await self.ask(request, partial(quotas.state, request.query.get("name", ""))))

    async def _changed(self, change: Change, request: web.Request) -> web.Response:
        if words := refusal_of_change(request, self.token):
            return refused(words)
        quotas, (text, shown) = self._quotas(request), await _body(request)
        try:
            return _json(await self.ask(request, partial(change, quotas, text, shown)))
        except RefusedEditError as error:
            raise web.HTTPUnprocessableEntity(text=f"{error}\n") from error
        except OtherDiffError as error:
            raise web.HTTPConflict(text=f"{error}\n") from error

    def _quotas(self, request: web.Request) -> LocalQuotas:
        layout = self.layouts.get(self._cluster(request))
        if layout is None:
            raise web.HTTPNotFound(text=f"{NO_RESOURCES}\n")
        return LocalQuotas(layout)

    def _cluster(self, request: web.Request) -> str:
        name = request.query.get("cluster", "")
        if name not in self.watches:
            raise web.HTTPNotFound(text=f'there is no cluster "{name}" here\n')
        return name

    def _limits(self, cluster: str, text: str) -> tuple[AnyEntity, Mapping[str, float]]:
        """The entity with this text and its limits, as the last look has them."""
        history = self.watches[cluster].history
        for entity, values in ((history.now.quotas or {}) if history is not None else {}).items():
            if units.printable(entity_text(as_meant(entity, values))) == text:
                return entity, values
        raise web.HTTPNotFound(text="the cluster has no quota of this entity, or was not asked yet\n")


async def _body(request: web.Request) -> tuple[str, str]:
    """The text and the sum that a request holds."""
    try:
        found: Any = json.loads(await request.read())
        text, shown = found["text"], found.get("sum", "")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise web.HTTPBadRequest(text="the body is a JSON object with the text of a resource\n") from error
    if not isinstance(text, str) or not isinstance(shown, str):
        raise web.HTTPBadRequest(text="text and sum are strings\n")
    if len(text.encode(errors="replace")) > TEXT_BYTES_MAX:
        raise web.HTTPRequestEntityTooLarge(TEXT_BYTES_MAX, len(text))
    return text, shown


def _json(found: Document) -> web.Response:
    body = json.dumps(found, allow_nan=False, ensure_ascii=False).encode(errors="replace")
    return web.Response(body=body, content_type="application/json", charset="utf-8", headers=HEADERS)
