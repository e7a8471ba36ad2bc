"""Decides which requests the console answers: those of its own page, in a browser that has shown the key.

It takes only requests that name 127.0.0.1 as their host: a page elsewhere whose name leads here (DNS rebinding) gets
nothing. Other sites may link to the page and ask for nothing else. Other users of the machine do not know the key,
which the address that is printed has.

A browser that has shown the key has a cookie afterwards, which lets it read. Cookies are those of a host, whatever the
port: a page of another program of this machine that the browser opens is sent it too. So the key does not follow from
the cookie, and the cookie changes nothing: the token for that goes to the page behind the `#` of its address, once the
key was shown, and stays in the storage of its tab, which belongs to this port alone.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from kavka_operator.web_page.assembly import HEADERS

Middleware = Callable[..., Awaitable[web.StreamResponse]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HOST: Final = "127.0.0.1"
PAGE: Final = "/"
KEY: Final = "key"
TOKEN: Final = "token"  # noqa: S105 - its name in an address
TOKEN_HEADER: Final = "X-Kavka-Token"  # noqa: S105 - a header's name
"""Has the token that a change needs: a form of another site cannot send it, nor a script without leave to."""


def refusal(request: web.Request) -> str:
    """The reason for which a request is refused; empty where it is not."""
    name, _, port = request.host.rpartition(":")
    if name not in (HOST, "localhost") or port != str(_port(request)):
        return f"this page is at http://{HOST}:{_port(request)}/ alone"
    is_visit = request.path == PAGE and request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    if request.headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"} and not is_visit:
        return "another site asks for it"
    return ""


def refusal_of_change(request: web.Request, token: str) -> str:
    """The reason for which a request to change something is refused; empty where it is not.

    The origin must be the page's own, and is there: browsers send it with every POST.
    """
    if request.headers.get("Origin") != f"http://{request.host}":
        return "a change is asked for by the page itself: the Origin is another one, or missing"
    if not token or not _is_equal(request.headers.get(TOKEN_HEADER, ""), token):
        return "this tab has no token of this start of the console: open the address that kavka has printed"
    if request.content_type != "application/json":
        return "a change is sent as application/json"
    return ""


def _port(request: web.Request) -> int:
    name = request.transport.get_extra_info("sockname") if request.transport is not None else None
    return int(name[1]) if name else 0


def address_of(port: int, key: str) -> str:
    """The address of the page, for the one who started it."""
    return f"http://{HOST}:{port}{PAGE}" + (f"?{KEY}={key}" if key else "")


def guard(key: str, token: str = "") -> Middleware:
    """Refuse what this page has not asked for, and browsers that have not shown the key; without one all may ask. Who
    shows the key is given the token, if there is one.
    """
    session = hmac.new(key.encode(), b"cookie", hashlib.sha256).hexdigest()

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        words = refusal(request)
        cookie = f"kavka-console-{_port(request)}"  # cookies are those of a host, whatever the port
        if words:
            return refused(words)
        # The key is looked at before the cookie: each tab that shows it is given the token.
        shows_key = bool(key) and request.path == PAGE and _is_equal(request.query.get(KEY, ""), key)
        if not shows_key:
            if not key or _is_equal(request.cookies.get(cookie, ""), session):
                return await _with_headers(request, handler)
            return refused("open the address that kavka has printed: it has the key")
        place = f"{PAGE}#{TOKEN}={token}" if token else PAGE
        answer = web.Response(status=303, headers={**HEADERS, "Location": place})
        answer.set_cookie(cookie, session, httponly=True, samesite="Strict", path="/")
        return answer

    return guarded


async def _with_headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        error.headers.update(HEADERS)
        raise


def _is_equal(shown: str, key: str) -> bool:
    return hmac.compare_digest(shown.encode(errors="replace"), key.encode())


def refused(words: str) -> web.Response:
    """The answer to a request that is refused."""
    return web.Response(status=403, text=f"{words}\n", headers=HEADERS)
