"""Decides who sees what on the console where others than those who may forward a port of the pod can reach it.

A visitor brings a token of the API server. What the API server lets that token list is shown, and nothing else: each
kind in all namespaces, or in those of the resources that there are. Answers are remembered for seconds, by the hash of
the token, which is kept nowhere.
"""

import asyncio
import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kavka_operator.api.stored_resources import part
from kavka_operator.platform.kubernetes.live.api import ApiError

KINDS_SHOWN: Final = ("KafkaCluster", "Topic", "ClientQuota")
NAMESPACES_MAX: Final = 50
"""Those that are asked about one by one for a visitor who may not list in all; resources of others are not shown."""
REMEMBERED_SECONDS: Final = 30.0
REFUSED_SECONDS: Final = 5.0
REMEMBERED_MAX: Final = 256
REVIEWS_AT_ONCE_MAX: Final = 4
VISITORS_WAITING_MAX: Final = 32
TOKEN_LENGTH_MAX: Final = 8_000
TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
UNKNOWN = 401

Document = Mapping[str, Any]


class Reviews(Protocol):
    """Asks the API server as the holder of a token."""

    async def may_list(self, token: str, kind: str, namespace: str) -> bool:
        """Whether the holder may list a kind, in a namespace or, where it is empty, in all. Raises ApiError."""


class RefusedError(Exception):
    """A visitor who sees nothing; `status` is the code of HTTP for it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Rights:
    """The namespaces of each kind that a visitor may list; None stands for all."""

    namespaces: tuple[tuple[str, frozenset[str] | None], ...]

    def shown(self, documents: Iterable[Document]) -> list[Document]:
        """Return those of the resources that the visitor may list."""
        known = dict(self.namespaces)
        return [document for document in documents if _is_within(document, known)]

    @property
    def is_nothing(self) -> bool:
        return all(found is not None and not found for _, found in self.namespaces)


def _is_within(document: Document, known: Mapping[str, frozenset[str] | None]) -> bool:
    kind = str(document.get("kind"))
    allowed = known.get(kind, frozenset())
    return allowed is None or str(part(dict(document), "metadata").get("namespace")) in allowed


@dataclass(slots=True)
class Door:
    """Lets visitors in by their tokens. `clock` counts seconds."""

    reviews: Reviews
    clock: Callable[[], float] = time.monotonic
    _remembered: OrderedDict[bytes, tuple[float, Rights | RefusedError]] = field(default_factory=OrderedDict)
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(REVIEWS_AT_ONCE_MAX))
    _waiting: int = 0

    async def rights(self, authorization: str, namespaces: Iterable[str]) -> Rights:
        """Return the rights of who sends this Authorization. Raises RefusedError."""
        token = _token_of(authorization)
        key = hashlib.sha256(token.encode()).digest()
        found = self._known(key)
        if found is None:
            found = await self._asked(key, token, sorted(set(namespaces))[:NAMESPACES_MAX])
        if isinstance(found, RefusedError):
            raise RefusedError(found.status, str(found))
        return found

    def _known(self, key: bytes) -> Rights | RefusedError | None:
        until, found = self._remembered.get(key, (0.0, None))
        return found if self.clock() < until else None

    async def _asked(self, key: bytes, token: str, namespaces: list[str]) -> Rights | RefusedError:
        """Ask the API server, one visitor behind the other where there are many. Raises RefusedError."""
        if self._waiting >= VISITORS_WAITING_MAX:
            raise RefusedError(503, "too many visitors are being let in; try again in a few seconds")
        self._waiting += 1
        try:
            async with self._places:
                if (known := self._known(key)) is not None:  # another request of the same visitor has asked meanwhile
                    return known
                found = await self._reviewed(token, namespaces)
        finally:
            self._waiting -= 1
        seconds = REFUSED_SECONDS if isinstance(found, RefusedError) else REMEMBERED_SECONDS
        self._remembered[key] = self.clock() + seconds, found
        self._remembered.move_to_end(key)
        while len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)
        return found

    async def _reviewed(self, token: str, namespaces: list[str]) -> Rights | RefusedError:
        """Return what the API server says. Raises RefusedError where it says nothing."""
        try:
            rights = Rights(tuple([(kind, await self._listed(token, kind, namespaces)) for kind in KINDS_SHOWN]))
        except ApiError as error:
            if error.status == UNKNOWN:
                return RefusedError(401, "the API server does not know this token, or it has ended")
            raise RefusedError(503, f"whether you may see this is not known: {error}") from error
        if rights.is_nothing:
            return RefusedError(403, "the holder of this token may list no KafkaCluster, Topic or ClientQuota")
        return rights

    async def _listed(self, token: str, kind: str, namespaces: list[str]) -> frozenset[str] | None:
        """Return the namespaces in which a kind may be listed; None for all. Raises ApiError."""
        if await self.reviews.may_list(token, kind, ""):
            return None
        return frozenset([name for name in namespaces if await self.reviews.may_list(token, kind, name)])


def _token_of(authorization: str) -> str:
    """Return the token of an Authorization header. Raises RefusedError."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise RefusedError(401, "send a token of the API server: Authorization: Bearer TOKEN")
    if len(token) > TOKEN_LENGTH_MAX or TOKEN.fullmatch(token) is None:
        raise RefusedError(401, "this is no token of an API server")
    return token
