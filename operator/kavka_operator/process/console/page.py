"""The console's two answers: the page, which is one file, and what it asks for every two seconds.

The page may run its own script and style, known by their hashes, and ask this port; nothing else is let in, whatever a
name or a message of a resource holds. The overview is made in a thread, and once a second at most, however many look.
"""

import asyncio
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from aiohttp import web

from kavka_operator.process.console.overview import overview
from kavka_operator.process.metrics import Figures
from kavka_operator.web_page.assembly import HEADERS, WebPage, assemble

FRESH_SECONDS = 1.0
MADE_APART = 10.0
"""Seconds for which an overview is shown, for each second that it took: one of very many resources takes a while."""
PAGE, DATA = "/", "/console.json"


@cache
def source() -> WebPage:
    """The page as it is sent."""
    return assemble(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))


@dataclass(slots=True)
class Console:
    """The handlers of both. `clock` counts seconds."""

    figures: Figures
    clock: Callable[[], float] = time.monotonic
    _made: bytes = b""
    _fresh_until: float = -math.inf
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def routes(self) -> list[web.RouteDef]:
        """The places where they answer."""
        return [web.get(PAGE, self._page), web.get(DATA, self._data)]

    async def _page(self, _: web.Request) -> web.Response:
        page = source()
        return web.Response(text=page.text, content_type="text/html", charset="utf-8", headers=page.headers)

    async def _data(self, _: web.Request) -> web.Response:
        async with self._lock:
            if (began := self.clock()) >= self._fresh_until:
                self._made = await asyncio.to_thread(self._made_now)
                ended = self.clock()
                self._fresh_until = ended + max(FRESH_SECONDS, MADE_APART * (ended - began))
        return web.Response(body=self._made, content_type="application/json", charset="utf-8", headers=HEADERS)

    def _made_now(self) -> bytes:
        figures = self.figures
        about = {
            "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "isActive": figures.is_active,
            "isListed": bool(figures.listed_at),
        }
        return json.dumps({**about, **overview(figures.documents())}, allow_nan=False).encode()
