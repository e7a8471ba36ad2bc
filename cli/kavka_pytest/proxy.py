"""A proxy in front of brokers, which plays the faults of a test.

Clients are given its addresses, and every address of a broker in an answer becomes one of its own, so no client gets
past it. It needs nothing of the broker: a fault is played the same for a broker in the test's process, for one in a
process of its own, and for Apache Kafka. Without faults a request and its answer pass as they are.

The answers of a connection leave in the order of its requests, as Kafka's do: each request that expects one has an
`Expected`, which the broker's answer, or a fault, fulfils.
"""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, NoReturn

from kavka_broker.protocol.catalog import request_class, response_class
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import ErrorCode, ProtocolViolation
from kavka_broker.protocol.framing import (
    RequestHeader,
    encode_request_header,
    encode_response_parts,
    read_request_header,
    read_response_header,
)
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import index
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kavka_pytest.error_answers import PRODUCE, answer_to, places, places_defined, wants_answer
from kavka_pytest.fault_plan import Action, Decision, Place, Request, Rule
from kavka_pytest.faults import Faults
from kavka_pytest.relayed import (
    API_VERSIONS,
    FETCH,
    Address,
    FetchSession,
    endpoints,
    limit_versions,
    may_hold_endpoints,
    replace_addresses,
)

HOST: Final = "127.0.0.1"
SIZE: Final = Struct(">i")
FRAME_BYTES_MAX: Final = 256 * 1024 * 1024
PAST_BYTES: Final = 64 * 1024
"""How much is passed on at a time of what is no frame of Kafka's."""
LEARN_SECONDS_MAX: Final = 30.0
METADATA: Final = 3
METADATA_VERSION: Final = 9
WORDS: Final = "by the fault plan of the test"
UNSUPPORTED: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


class Ended(Exception):
    """A connection is to be closed."""


@dataclass(slots=True, eq=False)
class Expected:
    """An answer that a client waits for. `data` is its frame, or None where the connection is to be closed instead."""

    api_key: int
    version: int
    correlation_id: int
    delay_ms: float = 0.0
    is_dropped: bool = False
    cleared: asyncio.Event | None = None  # set once the fault that holds it is taken away
    data: "asyncio.Future[bytes | None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def fulfil(self, data: bytes | None) -> None:
        if not self.data.done():
            self.data.set_result(data)


class Proxy:
    """The listeners, one for each broker. Used in its loop alone, except for `faults`."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.cleared = asyncio.Event()  # set and replaced whenever the faults are taken away
        self.brokers: dict[int, Address] = {}  # the proxy's address of each node, as far as it has been named
        self._servers: dict[Address, asyncio.Server] = {}  # by the broker's own address
        self._nodes: dict[int, Address] = {}  # the broker's own address of each node that has been named
        self._cut: set[int] = set()
        self._connections: dict[asyncio.Task[None], Address] = {}  # with the broker's own address

    async def start(self, bootstrap: list[Address]) -> list[Address]:
        """Listen for brokers; returns the addresses for clients. Raises OSError where none answers."""
        ours = [await self.address_of(address) for address in bootstrap]
        async with asyncio.timeout(LEARN_SECONDS_MAX):
            await self._learn(bootstrap)
        return ours

    async def address_of(self, broker: Address) -> Address:
        """The address for clients of a broker, which is listened on from now."""
        server = self._servers.get(broker)
        if server is None:
            server = self._servers[broker] = await asyncio.start_server(
                lambda reader, writer: self._accept(broker, reader, writer), HOST, 0
            )
        return HOST, int(server.sockets[0].getsockname()[1])

    async def cut(self, node: int) -> bool:
        """End the connections to a node, and those that are made until `mend`; whether the node is known."""
        if node not in self._nodes:
            return False
        self._cut.add(node)
        for task, broker in list(self._connections.items()):
            if broker == self._nodes[node]:
                task.cancel()
        return True

    async def mend(self, node: int) -> None:
        """Let connections through to a node again."""
        self._cut.discard(node)

    def _is_cut(self, broker: Address) -> bool:
        return any(self._nodes[node] == broker for node in self._cut)

    def clear(self) -> None:
        """Let go what faults hold, and let all connections through: there are none any more."""
        self._cut.clear()
        self.cleared.set()
        self.cleared = asyncio.Event()

    async def close(self) -> None:
        """Stop listening and end all connections."""
        for server in self._servers.values():
            server.close()
        self._servers = {}
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def to_clients(self, answer: Message) -> None:
        """Put our addresses into an answer, and remember which node has which."""
        theirs = {(found.host, found.port): found for found in endpoints(answer) if found.host and found.port > 0}
        ours = {address: await self.address_of(address) for address in theirs}
        for address, found in theirs.items():
            if hasattr(found, "node_id"):
                self.brokers[found.node_id] = ours[address]
                self._nodes[found.node_id] = address
        replace_addresses(answer, lambda address: ours[address])

    async def _learn(self, bootstrap: list[Address]) -> None:
        """Ask which nodes there are. Raises OSError where none answers."""
        problem: OSError | None = None
        for host, port in bootstrap:
            try:
                answer = await _ask_metadata(host, port)
            except OSError as error:
                problem = error
            else:
                await self.to_clients(answer)
                return
        raise problem or OSError("there is no address to ask")

    async def _accept(self, broker: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a server handles connections in tasks"
        if self._is_cut(broker):
            writer.transport.abort()
            return
        self._connections[task] = broker
        try:
            await Connection(self, broker, reader, writer).run()
        except (OSError, EOFError):
            pass  # one of the two has closed, and so do we
        except asyncio.CancelledError:
            if self._servers and not self._is_cut(broker):
                raise  # neither by `close` nor by `cut`
        finally:
            self._connections.pop(task, None)
            writer.close()


async def _ask_metadata(host: str, port: int) -> MetadataResponse:
    """The brokers that a broker knows. Raises OSError."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        header = RequestHeader(METADATA, METADATA_VERSION, 0, "kavka-test-proxy")
        frame = encode_request_header(header) + encode(MetadataRequest(topics=[]), METADATA_VERSION)
        writer.write(SIZE.pack(len(frame)) + frame)
        answer = await reader.readexactly(*SIZE.unpack(await reader.readexactly(SIZE.size)))
        _, body = read_response_header(METADATA, METADATA_VERSION, memoryview(answer))
        return decode(MetadataResponse, METADATA_VERSION, memoryview(answer)[body:])
    except EOFError as error:
        raise ConnectionResetError(f"{host}:{port} closed the connection") from error
    finally:
        writer.close()


class Connection:
    """A connection of a client, and its own to the broker."""

    def __init__(
        self, proxy: Proxy, broker: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._broker = broker
        self._reader = reader
        self._writer = writer
        self._session = FetchSession()
        self._expected: deque[Expected] = deque()  # of the broker, in the order of the requests
        self._leaving: asyncio.Queue[Expected | None] = asyncio.Queue()  # to the client, in that order too
        self._swallowed: asyncio.Event | None = None  # in a black hole, until this is set

    async def run(self) -> None:
        """Pass on until one side closes. Raises OSError where the broker cannot be reached."""
        theirs, to_broker = await asyncio.open_connection(*self._broker)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._requests(to_broker))
                group.create_task(self._answers(theirs))
                group.create_task(self._leave())
        except* (OSError, EOFError, Ended):
            pass
        finally:
            to_broker.close()

    async def _requests(self, to_broker: asyncio.StreamWriter) -> NoReturn:
        """Pass requests on, except for those of which a fault says otherwise. Raises EOFError, OSError and Ended."""
        while True:
            size, frame = await _frame(self._reader)
            if frame is None:  # it does not speak Kafka's protocol, and the broker may say so
                to_broker.write(size)
                await _pass_on(self._reader, to_broker)
            elif self._begin(frame):
                to_broker.write(size)
                to_broker.write(frame)
                await to_broker.drain()
            elif self._swallowed is not None:
                await self._swallowed.wait()
                raise Ended

    def _begin(self, frame: bytes) -> bool:
        """Note the answer that a request expects. Whether the broker is to have the request."""
        try:
            header, body = read_request_header(memoryview(frame))
        except ProtocolViolation:
            return True
        request = self._decoded(header, frame, body)
        has_answer = request is None or wants_answer(request)
        decision = self._decide(header, request, has_answer=has_answer)
        expected = Expected(header.api_key, header.api_version, header.correlation_id)
        if decision.rule is not None:
            return self._play(decision.rule, decision.place, request, header, expected)
        if has_answer:
            self._expect(expected)
        return True

    def _play(
        self, rule: Rule, place: Place | None, request: Message | None, header: RequestHeader, expected: Expected
    ) -> bool:
        """Begin what a fault says of a request. Whether the broker is to have it."""
        expected.cleared = self._proxy.cleared
        if rule.action is Action.BLACK_HOLE:
            self._swallowed = expected.cleared
            return False
        if rule.action is Action.ANSWER:
            assert request is not None, "there is room in a request that could be read"
            expected.fulfil(self._error(request, header, rule.error, place))
        elif rule.action is Action.DROP:
            expected.is_dropped = True
            if not rule.reaches_broker:
                expected.fulfil(None)
        else:
            expected.delay_ms = rule.delay_ms
        if expected.data.done():
            self._leaving.put_nowait(expected)
            return False
        self._expect(expected)
        return True

    def _decide(self, header: RequestHeader, request: Message | None, *, has_answer: bool) -> Decision:
        """The fault for a request."""
        key, version, faults = header.api_key, header.api_version, self._proxy.faults
        if faults.is_empty or key not in index.REQUESTS:
            return Decision(None, None)
        name = index.REQUESTS[key].removesuffix("Request")
        room = defined = frozenset[Place]()
        if request is not None and faults.may_answer(name):
            room, defined = places(request, version), places_defined(key, version)
        return faults.decide(Request(name, version, header.client_id or "", room, defined, has_answer))

    def _decoded(self, header: RequestHeader, frame: bytes, body: int) -> Message | None:
        """The request where it is to be looked into; None where it cannot be read: the broker will say so."""
        key = header.api_key
        if key not in index.REQUESTS or (self._proxy.faults.is_empty and key not in (PRODUCE, FETCH)):
            return None
        kind = request_class(key)
        if not kind.VERSIONS[0] <= header.api_version <= kind.VERSIONS[1]:
            return None
        try:
            request = decode(kind, header.api_version, memoryview(frame)[body:])
        except ProtocolViolation:
            return None
        return self._session.whole(request) if isinstance(request, FetchRequest) else request

    def _error(self, request: Message, header: RequestHeader, error: str, place: Place | None) -> bytes:
        """The frame of an answer with an error."""
        assert place is not None, "the plan plays an error only where there is room for it"
        answer = answer_to(request, header.api_version, ErrorCode[error], place, f"{error} {WORDS}")
        assert answer is not None, "the same"
        if isinstance(answer, MetadataResponse):
            answer.brokers = [MetadataResponseBroker(node, *at) for node, at in sorted(self._proxy.brokers.items())]
        return b"".join(encode_response_parts(answer, header.api_version, header.correlation_id))

    def _expect(self, expected: Expected) -> None:
        self._expected.append(expected)
        self._leaving.put_nowait(expected)

    async def _answers(self, theirs: asyncio.StreamReader) -> None:
        """Take the broker's answers, and fulfil with them what is expected."""
        while True:
            try:
                size, frame = await _frame(theirs)
            except (OSError, EOFError):
                break
            if frame is None or not self._expected:
                self._writer.write(size + (frame or b""))
                with suppress(EOFError):
                    await _pass_on(theirs, self._writer)
                break
            expected = self._expected.popleft()
            expected.fulfil(None if expected.is_dropped else await self._relayed(expected, size, frame))
        # What is owed of our own still leaves; then the connection closes.
        for expected in self._expected:
            expected.fulfil(None)
        self._leaving.put_nowait(None)

    async def _relayed(self, expected: Expected, size: bytes, frame: bytes) -> bytes:
        """The frame for the client: with our addresses, and with versions that can be read here."""
        key, version = expected.api_key, expected.version
        if key != API_VERSIONS and not may_hold_endpoints(key):
            return size + frame
        try:
            _, body = read_response_header(key, version, memoryview(frame))
            if key == API_VERSIONS and frame[body : body + 2] == UNSUPPORTED:
                version = 0  # so a broker answers a version that it does not know
            answer = decode(response_class(key), version, memoryview(frame)[body:])
        except ProtocolViolation:
            return size + frame
        if isinstance(answer, ApiVersionsResponse):
            limit_versions(answer)
        await self._proxy.to_clients(answer)
        return b"".join(encode_response_parts(answer, version, expected.correlation_id))

    async def _leave(self) -> NoReturn:
        """Send answers in the order of the requests. Raises Ended where the connection is to be closed."""
        while (expected := await self._leaving.get()) is not None:
            data = await expected.data
            if expected.delay_ms and expected.cleared is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(expected.cleared.wait(), expected.delay_ms / 1000)
            if self._swallowed is not None:
                await self._swallowed.wait()  # a black hole passes on no end either
            if data is None:
                break
            self._writer.write(data)
            await self._writer.drain()
        raise Ended


async def _frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes | None]:
    """The size of a frame as it was sent, and the frame; None where this is no size. Raises OSError and EOFError."""
    size = await reader.readexactly(SIZE.size)
    (count,) = SIZE.unpack(size)
    return size, await reader.readexactly(count) if 0 <= count <= FRAME_BYTES_MAX else None


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> NoReturn:
    """Pass on whatever comes. Raises OSError and EOFError at its end."""
    while data := await reader.read(PAST_BYTES):
        writer.write(data)
        await writer.drain()
    raise EOFError
