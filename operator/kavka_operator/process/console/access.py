"""Decides who sees what on the console where others than those who may forward a port of the pod can reach it.

A visitor brings a token of the API server. What the API server lets that token list is shown, and nothing else: each
kind in all namespaces, or in those of the resources that there are. Answers are remembered for seconds, by the hash of
the token, which is kept nowhere.

What is in a cluster (`DataDoor`) takes a right of its own, whatever may be listed: `get` on a subresource of the
KafkaCluster, which stands for nothing else.
"""

import asyncio
import hashlib
import re
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from kavka_operator.api.stored_resources import part
from kavka_operator.platform.kubernetes.live.api import ApiError
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey

KINDS_SHOWN: Final = ("KafkaCluster", "Topic", "ClientQuota")
NAMESPACES_MAX: Final = 50
"""Those that are asked about one by one for a visitor who may not list in all, in the order of their names."""
REMEMBERED_SECONDS: Final = 30.0
REFUSED_SECONDS: Final = 5.0
REMEMBERED_MAX: Final = 256
REVIEWS_AT_ONCE_MAX: Final = 2
"""Of visitors who were let in before, and as many of others."""
WAITING_MAX: Final = 32
WAITING_OF_ONE_MAX: Final = 8
"""Of those whose tokens were not let in before, from one address."""
TOKEN_LENGTH_MAX: Final = 8_000
TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
UNKNOWN, FORBIDDEN, UNAVAILABLE = 401, 403, 503
T = TypeVar("T")

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DoorBounds:
    """Bounds of what visitors make the door keep, and ask."""

    remembered_max: int = REMEMBERED_MAX
    waiting_of_one_max: int = WAITING_OF_ONE_MAX
    namespaces_max: int = NAMESPACES_MAX


BOUNDS: Final = DoorBounds()


class Reviews(Protocol):
    """Asks the API server as the holder of a token."""

    async def may_list(self, token: str, kind: str, namespace: str) -> bool:
        """Whether the holder may list a kind, in a namespace or, where it is empty, in all. Raises ApiError."""

    async def may_get(self, token: str, subresource: str, namespace: str, name: str) -> bool:
        """Whether the holder may get a subresource of a KafkaCluster. Raises ApiError."""

    async def user_name(self, token: str) -> str | None:
        """The user that the holder is; None where the API server does not tell. Raises ApiError."""


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
class Line:
    """The visitors that are being let in: some at once, others wait, of one address not all of them."""

    places: asyncio.Semaphore
    waiting_max: int
    waiting_of_one_max: int
    _waiting: Counter[str] = field(default_factory=Counter)

    @asynccontextmanager
    async def place(self, address: str) -> AsyncIterator[None]:
        """Wait for a place. Raises RefusedError where too many wait."""
        if self._waiting.total() >= self.waiting_max or self._waiting[address] >= self.waiting_of_one_max:
            raise RefusedError(503, "too many visitors are being let in; try again in a few seconds")
        self._waiting[address] += 1
        try:
            async with self.places:
                yield
        finally:
            self._waiting[address] -= 1
            self._waiting = +self._waiting


@dataclass(slots=True)
class Memory(Generic[T]):
    """Values by the hashes of tokens, each until a moment; the oldest go where there are too many."""

    seconds: float
    clock: Callable[[], float]
    kept_max: int = REMEMBERED_MAX
    _kept: OrderedDict[bytes, tuple[float, T]] = field(default_factory=OrderedDict)

    def get(self, key: bytes) -> T | None:
        """Return the value, unless its time is over."""
        until, found = self._kept.get(key, (0.0, None))
        return found if self.clock() < until else None

    def put(self, key: bytes, value: T) -> None:
        """Keep a value."""
        self._kept[key] = self.clock() + self.seconds, value
        self._kept.move_to_end(key)
        while len(self._kept) > self.kept_max:
            self._kept.popitem(last=False)

    def drop(self, key: bytes) -> None:
        """Forget a value."""
        self._kept.pop(key, None)

    def __contains__(self, key: bytes) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)


class Gate(Generic[T]):
    """Asks the API server for an answer about a token, and remembers it and refusals for seconds.

    Who was let in before has places of their own, so that strangers with made-up tokens keep none of them out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, bounds: DoorBounds = BOUNDS) -> None:
        kept_max = bounds.remembered_max
        self.remembered: Memory[T] = Memory(REMEMBERED_SECONDS, clock, kept_max)
        self.refusals: Memory[RefusedError] = Memory(REFUSED_SECONDS, clock, kept_max)
        self._known = Line(asyncio.Semaphore(REVIEWS_AT_ONCE_MAX), kept_max, kept_max)
        self._strangers = Line(asyncio.Semaphore(REVIEWS_AT_ONCE_MAX), WAITING_MAX, bounds.waiting_of_one_max)

    async def answer(self, question: str, address: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer to a question, which has the token in it, of who is at an address. Raises RefusedError."""
        key = hashlib.sha256(question.encode()).digest()
        if (found := self._remembered(key)) is not None:
            return found
        async with (self._known if key in self.remembered else self._strangers).place(address):
            if (found := self._remembered(key)) is not None:  # another request of the same visitor has asked meanwhile
                return found
            try:
                found = await ask()
            except RefusedError as error:
                if error.status != UNAVAILABLE:
                    self.remembered.drop(key)
                    self.refusals.put(key, error)
                raise
            self.remembered.put(key, found)
            return found

    def _remembered(self, key: bytes) -> T | None:
        """Return the answer that is remembered. Raises RefusedError where a refusal is."""
        if (refusal := self.refusals.get(key)) is not None:
            raise RefusedError(refusal.status, str(refusal))
        return self.remembered.get(key)


class Visitors:
    """Tells visitors apart by the users that the API server takes them for, so that one with many tokens is one.

    Where the API server names no user, a token is a visitor.
    """

    def __init__(
        self, reviews: Reviews, clock: Callable[[], float] = time.monotonic, bounds: DoorBounds = BOUNDS
    ) -> None:
        self._reviews = reviews
        self.gate: Gate[bytes] = Gate(clock, bounds)

    async def find(self, authorization: str, address: str) -> bytes:
        """Return the visitor who sends this Authorization from an address, as bounds count it. Raises RefusedError."""
        token = token_of(authorization)
        return await self.gate.answer(token, address, partial(self._reviewed, token))

    async def _reviewed(self, token: str) -> bytes:
        """Return a hash of the user's name, or of the token. Raises RefusedError."""
        try:
            name = await self._reviews.user_name(token)
        except ApiError as error:
            raise refusal_of(error) from error
        counted = f"token\n{token}" if name is None else f"user\n{name}"
        return hashlib.sha256(counted.encode(errors="surrogatepass")).digest()


class Door:
    """Lets visitors in by their tokens. `clock` counts seconds."""

    def __init__(
        self, reviews: Reviews, clock: Callable[[], float] = time.monotonic, bounds: DoorBounds = BOUNDS
    ) -> None:
        self._reviews = reviews
        self._bounds = bounds
        self.gate: Gate[Rights] = Gate(clock, bounds)
        self.visitors = Visitors(reviews, clock, bounds)

    async def rights(self, authorization: str, address: str, namespaces: Callable[[], Iterable[str]]) -> Rights:
        """Return the rights of who sends this Authorization from an address. `namespaces`, which takes a while where
        there are very many resources, is called in a thread, and for a token alone that has to be asked about. Raises
        RefusedError.
        """
        token = token_of(authorization)

        async def ask() -> Rights:
            return await self._reviewed(token, await asyncio.to_thread(_sorted, namespaces))

        return await self.gate.answer(token, address, ask)

    async def _reviewed(self, token: str, namespaces: list[str]) -> Rights:
        """Return what the API server says. Raises RefusedError."""
        asked_max = self._bounds.namespaces_max
        asked = namespaces[:asked_max]
        try:
            rights = Rights(tuple([(kind, await self._listed(token, kind, asked)) for kind in KINDS_SHOWN]))
        except ApiError as error:
            raise refusal_of(error) from error
        if rights.is_nothing:
            first = f" in the first {asked_max} namespaces" if len(namespaces) > asked_max else ""
            words = f"the holder of this token may list no KafkaCluster, Topic or ClientQuota{first}"
            raise RefusedError(FORBIDDEN, words)
        return rights

    async def _listed(self, token: str, kind: str, namespaces: list[str]) -> frozenset[str] | None:
        """Return the namespaces in which a kind may be listed; None for all. Raises ApiError."""
        if await self._reviews.may_list(token, kind, ""):
            return None
        return frozenset([name for name in namespaces if await self._reviews.may_list(token, kind, name)])


class DataDoor:
    """Lets visitors look into clusters by their tokens. `clock` counts seconds."""

    def __init__(
        self, reviews: Reviews, clock: Callable[[], float] = time.monotonic, bounds: DoorBounds = BOUNDS
    ) -> None:
        self._reviews = reviews
        self.gate: Gate[bool] = Gate(clock, bounds)
        self.visitors = Visitors(reviews, clock, bounds)

    async def check(self, authorization: str, address: str, cluster: ClusterKey, subresource: str) -> None:
        """Raise RefusedError unless who sends this Authorization from an address may get the subresource of the
        KafkaCluster. Others do not even learn whether there is one.
        """
        token = token_of(authorization)
        question = "\n".join([token, subresource, *cluster])
        await self.gate.answer(question, address, partial(self._reviewed, token, cluster, subresource))

    async def _reviewed(self, token: str, cluster: ClusterKey, subresource: str) -> bool:
        """Return True where the API server lets the holder get it. Raises RefusedError."""
        namespace, name = cluster
        try:
            is_allowed = await self._reviews.may_get(token, subresource, namespace, name)
        except ApiError as error:
            raise refusal_of(error) from error
        if not is_allowed:
            words = f'the holder of this token may not get kafkaclusters/{subresource} of "{name}" in "{namespace}"'
            raise RefusedError(FORBIDDEN, words)
        return True


def _sorted(namespaces: Callable[[], Iterable[str]]) -> list[str]:
    return sorted(set(namespaces()))


def refusal_of(error: ApiError) -> RefusedError:
    """Return the refusal of a visitor about whom the API server has not answered."""
    if error.status == UNKNOWN:
        return RefusedError(UNKNOWN, "the API server does not know this token, or it has ended")
    return RefusedError(UNAVAILABLE, f"whether you may see this is not known: {error}")


def token_of(authorization: str) -> str:
    """Return the token of an Authorization header. Raises RefusedError."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise RefusedError(401, "send a token of the API server: Authorization: Bearer TOKEN")
    if len(token) > TOKEN_LENGTH_MAX or TOKEN.fullmatch(token) is None:
        raise RefusedError(401, "this is no token of an API server")
    return token
