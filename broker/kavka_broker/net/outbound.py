"""Connections that this node opens to others: `peers.Peers` over the loop.

    ask ──> connect, ApiVersions, log in ──> encode, write ──> (answers come in order of the correlation ids) ──> decode

The versions that the other side speaks are learnt once a connection, so a node that comes back upgraded is spoken to
in its new versions. Answers own their bytes: they may be kept for as long as it takes to append them.

One question that is not answered in time ends the connection, as Apache Kafka does it: behind a lost packet or a
stopped process all that follows would wait too, and a new connection tells quickly which of both it is.

Where a login holds for a while only (KIP-368), another connection takes over before its end, with a login of its own:
to renew it on the same connection all questions would have to wait for a round trip or two. What was asked over the
former one is answered there.
"""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from errno import ECONNREFUSED
from math import inf
from struct import Struct
from typing import Any, Final, NamedTuple, Self, TypeVar

from kavka_broker.core.authentication.scram_client import LoginError
from kavka_broker.logs import get
from kavka_broker.net.outbound_login import Introduction
from kavka_broker.net.tls_protocol import connect
from kavka_broker.net.transports import free, stream_of
from kavka_broker.peers import ApiRanges, Peer, Unreachable
from kavka_broker.protocol.codec import decoder, encode
from kavka_broker.protocol.errors import ErrorCode, ProtocolViolation
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse

log = get("net")

R = TypeVar("R", bound=Message)
Told = Callable[[str, int], None]

SIZE: Final = Struct(">i")
#: Answers up to this size share a buffer; a larger one is received into a buffer of its own.
SHARED_BYTES: Final = 64 * 1024
FRAME_BYTES_MAX: Final = 512 * 1024 * 1024
IN_FLIGHT_MAX: Final = 1_000
CORRELATION_ID_MAX: Final = 2**31 - 1
#: The share of a login's lifetime after which another connection takes over, and the least time before that.
LIFETIME_SHARE: Final = 0.85
LIFETIME_SECONDS_MIN: Final = 0.01
#: The version of ApiVersions that Kafka 2.4 and later understand; later ones add nothing that is used here.
API_VERSIONS_VERSION: Final = 3
CLOSED_EARLY: Final = "the connection was lost before this node was known there; the log of that node may say why"
SOFTWARE: Final = ("kavka", "0.1.0")
_ERRNO: Final = re.compile(r"\[Errno (\d+)\]")


class Outbound:
    """`peers.Peers` by real connections. Listeners hear of connections that stand, and of those that the
    other side has broken while it owed an answer.
    """

    def __init__(self, introduction: Introduction | None = None) -> None:
        self.introduction = introduction or Introduction()
        self.on_opened: Told = _nothing
        self.on_broken: Told = _nothing

    def to(self, host: str, port: int, *, client_id: str) -> Peer:
        return Remote(host, port, client_id, self)

    async def probe(self, host: str, port: int, timeout_ms: float) -> bool | None:
        """Open a connection and close it. A stopped or busy process is still found: its system answers."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                transport, _ = await loop.create_connection(asyncio.Protocol, host, port)
        except TimeoutError:
            return None
        except OSError as problem:
            return False if is_refused(problem) else None
        except ValueError:
            return None  # the host is not a valid name; see `Remote._open`
        transport.abort()
        return True


class Remote:
    """A node at an address, with the connection to it while there is one."""

    def __init__(self, host: str, port: int, client_id: str, outbound: Outbound) -> None:
        self._address = (host, port)
        self._client_id = client_id
        self._outbound = outbound
        self.link: Link | None = None
        self.versions: ApiRanges | None = None
        self.retired: list[Link] = []  # former connections that still owe answers
        self.opening: asyncio.Task[Link] | None = None
        self._refusal = ""  # what the log was told last
        self._line: dict[object, None] = {}  # requests that wait for the connection, and those behind them in line

    def __str__(self) -> str:
        return "{}:{}".format(*self._address)

    def ask(self, request: Message, response: type[R], *, timeout_ms: float) -> Awaitable[R]:
        link, limit = self.link, Limit.after(timeout_ms)
        if link is None or link.is_lost or self._line:
            return self._ask_when_connected(request, response, limit)
        try:
            return link.ask(request, response, limit)
        except Unreachable as problem:
            return _unreachable(problem)

    async def _ask_when_connected(self, request: Message, response: type[R], limit: "Limit") -> R:
        ticket = object()
        self._line[ticket] = None
        try:
            async with asyncio.timeout_at(limit.seconds):
                link = await self._connected()
                while next(iter(self._line)) is not ticket:  # noqa: ASYNC110 - for a turn or two
                    await asyncio.sleep(0)
        except TimeoutError:
            if self.opening is not None:
                self.opening.cancel()  # the system retries the connection ever less often: better begin again
            raise Unreachable(limit.exceeded(str(self), request.NAME)) from None
        finally:
            del self._line[ticket]
        answer: R = await link.ask(request, response, limit)
        return answer

    def close(self) -> None:
        if self.opening is not None:
            self.opening.cancel()
        for link in (*self.retired, *(() if self.link is None else (self.link,))):
            link.lose(f"the connection to {self} is given up")

    async def _connected(self) -> "Link":
        if self.link is not None and not self.link.is_lost:
            return self.link
        opening = self.opening
        if opening is None:
            opening = self.opening = asyncio.create_task(self._open(), name=f"connect to {self}")
            opening.add_done_callback(self._opened)
        try:
            # Shielded: a request that is given up must not take the connection from the others.
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if opening.cancelled():
                raise Unreachable(f"the connection to {self} is given up") from None
            raise
        finally:
            del opening  # a failure holds this frame, and the task holds the failure

    def _opened(self, task: "asyncio.Task[Link]") -> None:
        if self.opening is task:
            self.opening = None
        if not task.cancelled() and task.exception() is None:
            self.link = task.result()
            self.versions = self.link.versions

    def retire(self, link: "Link") -> None:
        """Use another connection from now on."""
        if self.link is link:
            self.link = None
        self.retired = [former for former in (*self.retired, link) if not former.is_lost]
        link.retire()

    async def _open(self) -> "Link":
        try:
            link = await self._connect()
        except ssl.SSLError as problem:
            raise self._refused(f"{self}: {problem.strerror or problem}") from None
        except OSError as problem:
            raise Unreachable(f"{self}: {problem.strerror or problem}", refused=is_refused(problem)) from None
        except ValueError as problem:
            # An empty label, a too long one, a null: hosts are named by others, so this is no defect of ours.
            raise Unreachable(f"{self} is no address: {problem}") from None
        try:
            await link.greet()
            lifetime_ms = await self._outbound.introduction.log_in(link.ask_unbounded)
        except (LoginError, Unreachable) as problem:
            is_unknown = link.is_lost and self._outbound.introduction.is_needed
            words = CLOSED_EARLY if is_unknown else problem
            link.lose("the greeting failed")
            raise self._refused(f"{self}: {words}") from None
        except BaseException:
            link.lose("the greeting failed")
            raise
        self._refusal = ""
        if lifetime_ms:
            link.retire_after(max(lifetime_ms * LIFETIME_SHARE / 1000, LIFETIME_SECONDS_MIN), self.retire)
        self._outbound.on_opened(*self._address)
        return link

    async def _connect(self) -> "Link":
        def made() -> Link:
            return Link(self._client_id, str(self), self._broken)

        return await connect(made, *self._address, self._outbound.introduction.context)

    def _refused(self, words: str) -> Unreachable:
        """The error of a connection that came to nothing. Where this node has to be known, the log tells it once."""
        if self._outbound.introduction.is_needed and words != self._refusal:
            self._refusal = words
            log.error("link.refused", node=str(self), reason=words, check="certificates and logins of both nodes")
        return Unreachable(words)

    def _broken(self) -> None:
        self._outbound.on_broken(*self._address)


class Limit(NamedTuple):
    """The time until which an answer is waited for, by the loop's clock, and the length of that wait."""

    seconds: float
    timeout_ms: float

    @classmethod
    def after(cls, timeout_ms: float) -> Self:
        return cls(asyncio.get_running_loop().time() + timeout_ms / 1000, timeout_ms)

    def exceeded(self, name: str, question: str) -> str:
        return f"{name} has not answered {question} within {self.timeout_ms:.0f} ms"


def _ignore() -> None:
    """The connection has ended already."""


NO_LIMIT: Final = Limit(inf, inf)


class Asked(NamedTuple):
    """A request that waits for its answer."""

    name: str
    response: type[Message]
    api_key: int
    version: int
    limit: Limit
    answer: "asyncio.Future[Any]"


class Link(asyncio.BufferedProtocol):
    """A TCP connection. It is used until it is lost, and then never again."""

    def __init__(self, client_id: str, name: str, on_broken: Callable[[], None]) -> None:
        self._client_id = client_id
        self.name = name
        self._on_broken = on_broken
        self._frames = Frames()
        self._asked: dict[int, Asked] = {}
        self._correlation_id = 0
        self.versions: ApiRanges = {}
        self._transport: asyncio.Transport | None = None
        self._watch: asyncio.TimerHandle | None = None  # for the first limit of the waiting requests, or one before it
        self._watch_seconds = inf  # when that is; a limit that is over has no such handle on every loop
        self.retirement: asyncio.TimerHandle | None = None
        self._is_retired = False
        self.is_lost = False

    def retire_after(self, seconds: float, retire: "Callable[[Link], None]") -> None:
        """Have `retire` called with this connection after a while, unless it is lost before."""
        self.retirement = asyncio.get_running_loop().call_later(seconds, retire, self)

    def retire(self) -> None:
        """Take no more requests, and close once those that were sent are answered."""
        self._is_retired = True
        if not self._asked:
            self.lose(f"the login at {self.name} ends soon")

    async def greet(self) -> None:
        """Learn which versions the node speaks. Raises Unreachable."""
        request = ApiVersionsRequest(*SOFTWARE)
        answer = await self._send(request, ApiVersionsResponse, API_VERSIONS_VERSION, NO_LIMIT)
        if answer.error_code != ErrorCode.NONE:
            raise Unreachable(f"{self.name} answers ApiVersions with {ErrorCode(answer.error_code).name}")
        self.versions = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}

    def version_of(self, request: Message) -> int:
        """Return the newest version that both sides know. Raises Unreachable where there is none."""
        assert request.API_KEY is not None
        low, high = request.VERSIONS
        if request.LATEST_UNSTABLE:
            high -= 1
        their_low, their_high = self.versions.get(request.API_KEY, (0, -1))
        version = min(high, their_high)
        if version < max(low, their_low):
            raise Unreachable(f"{self.name} does not speak {request.NAME} v{low} to v{high}")
        return version

    def ask(self, request: Message, response: type[R], limit: Limit) -> "asyncio.Future[R]":
        """Send a request now. Raises Unreachable where that cannot be done."""
        return self._send(request, response, self.version_of(request), limit)

    def ask_unbounded(self, request: Message, response: type[R]) -> "asyncio.Future[R]":
        """Send a request now; the wait for the connection bounds it. Raises Unreachable."""
        return self.ask(request, response, NO_LIMIT)

    def _send(self, request: Message, response: type[R], version: int, limit: Limit) -> "asyncio.Future[R]":
        if self._transport is None or self.is_lost:
            raise Unreachable(f"the connection to {self.name} is lost")
        if len(self._asked) >= IN_FLIGHT_MAX:
            raise Unreachable(f"{IN_FLIGHT_MAX} requests wait for {self.name}")
        assert request.API_KEY is not None
        self._correlation_id = correlation_id = self._correlation_id % CORRELATION_ID_MAX + 1
        header = RequestHeader(request.API_KEY, version, correlation_id, self._client_id)
        start, body = encode_request_header(header), encode(request, version)
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._asked[correlation_id] = Asked(request.NAME, response, request.API_KEY, version, limit, answer)
        if limit.seconds < self._watch_seconds:
            self._watch_until(limit.seconds)
        self._transport.write(b"".join((SIZE.pack(len(start) + len(body)), start, body)))
        return answer

    def _watch_until(self, seconds: float) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch, self._watch_seconds = None, seconds
        if seconds < inf:
            self._watch = asyncio.get_running_loop().call_at(seconds, self._look_at_limits)

    def _look_at_limits(self) -> None:
        """Lose the connection where a request has waited for too long, otherwise look again at the next limit.
        One timer serves all requests: nearly all are answered, and a timer for each would cost more than the rest.
        """
        self._watch, self._watch_seconds, now = None, inf, asyncio.get_running_loop().time()
        waiting = [asked for asked in self._asked.values() if not asked.answer.done()]
        late = next((asked for asked in waiting if asked.limit.seconds <= now), None)
        if late is not None:
            self.lose(late.limit.exceeded(self.name, late.name))
        elif waiting:
            self._watch_until(min(asked.limit.seconds for asked in waiting))

    def lose(self, reason: str) -> None:
        """Drop the connection and fail all pending requests."""
        if self.is_lost:
            return
        self.is_lost = True
        self._watch_until(inf)
        if self.retirement is not None:
            self.retirement.cancel()
        if self._transport is not None:
            self._transport.abort()
        asked, self._asked = self._asked, {}
        for request in asked.values():
            if not request.answer.done():
                request.answer.set_exception(Unreachable(reason))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = stream_of(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._asked and not self.is_lost:  # otherwise the connection was idle for long, and nothing waits for it
            self._on_broken()
        self.lose(f"the connection to {self.name} is lost" + (f": {exc}" if exc else ""))
        free(self._transport)
        self._on_broken = _ignore  # whose owner holds this connection

    def eof_received(self) -> bool:
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.room()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._frames.received(nbytes):
                self._answered(frame)
        except ProtocolViolation as violation:
            self.lose(f"{self.name}: {violation}")

    def _answered(self, frame: memoryview) -> None:
        if len(frame) < SIZE.size:
            raise ProtocolViolation(f"an answer of {len(frame)} bytes")
        asked = self._asked.pop(SIZE.unpack_from(frame)[0], None)
        if asked is None:
            raise ProtocolViolation("an answer that nobody asked for")
        if asked.answer.done():
            return  # the caller has given up
        try:
            _, body = read_response_header(asked.api_key, asked.version, frame)
            answer, _ = decoder(asked.response, asked.version)(frame, body)
        except ProtocolViolation as violation:
            asked.answer.set_exception(Unreachable(f"{self.name}: {violation}"))
            raise
        asked.answer.set_result(answer)
        if self._is_retired:
            self.retire()


class Frames:
    """Bytes in, whole frames out, each in memory of its own."""

    def __init__(self) -> None:
        self._shared = memoryview(bytearray(SHARED_BYTES))
        self._end = 0  # of the bytes received and not handed out, in the shared buffer
        self._own: memoryview | None = None  # memory of a frame too large for it
        self._own_end = 0

    def room(self) -> memoryview:
        return self._shared[self._end :] if self._own is None else self._own[self._own_end :]

    def received(self, count: int) -> list[memoryview]:
        """Return the frames that are whole now. Raises ProtocolViolation for an impossible size."""
        if self._own is None:
            self._end += count
            return self._take()
        self._own_end += count
        if self._own_end < len(self._own):
            return []
        frame, self._own = self._own, None
        return [frame]

    def _take(self) -> list[memoryview]:
        frames: list[memoryview] = []
        start, shared = 0, self._shared
        while self._end - start >= SIZE.size:
            (size,) = SIZE.unpack_from(shared, start)
            if not 0 <= size <= FRAME_BYTES_MAX:
                raise ProtocolViolation(f"an answer of {size} bytes")
            body = start + SIZE.size
            if body + size > self._end:
                if body + size - start > SHARED_BYTES:
                    self._receive_alone(shared[body : self._end], size)
                    return frames
                break
            frames.append(memoryview(bytearray(shared[body : body + size])))
            start = body + size
        waiting = self._end - start
        if start and waiting:
            shared[:waiting] = bytes(shared[start : self._end])
        self._end = waiting
        return frames

    def _receive_alone(self, begun: memoryview, size: int) -> None:
        self._own = memoryview(bytearray(size))
        self._own[: len(begun)] = begun
        self._own_end = len(begun)
        self._end = 0


async def _unreachable(problem: Unreachable) -> Any:
    raise problem


def _nothing(host: str, port: int) -> None:
    """Ignore news of a connection."""
    del host, port


def is_refused(problem: OSError) -> bool:
    """Whether every address of the host refused. The loop tells of several addresses in words only."""
    if isinstance(problem, ConnectionRefusedError):
        return True
    numbers = _ERRNO.findall(str(problem))
    return problem.errno is None and bool(numbers) and all(int(number) == ECONNREFUSED for number in numbers)
