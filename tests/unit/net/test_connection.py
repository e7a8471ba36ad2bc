"""A connection over a real loopback socket, with handlers that the test completes by hand.

The first byte of a request's body says what it is: `s` is answered at once, `w` waits and holds the connection, `p`
waits and lets the next begin, `t` is answered at once and throttles, `n` gets no answer, `x` breaks the protocol,
`wx` waits and then cannot be answered, `pt` waits like `p` and throttles, `e` fails as it begins, `h` waits like `p`
but holds the connection until the test lets go, `l` is answered with `LARGE_BYTES`. The answer of the others is the
body.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from struct import pack
from types import SimpleNamespace
from typing import Any

import pytest

from kavka_broker.core.audit.events import Window
from kavka_broker.core.audit.usage import UseWindow
from kavka_broker.loop.timers import Timers
from kavka_broker.net.connection import OUTBOX_BYTES_MAX, REQUESTS_PER_TURN_MAX, Connection
from kavka_broker.net.limits import Limits
from kavka_broker.net.listener import Listener
from kavka_broker.net.request_memory import RequestMemory
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.quotas.sensor import HeldTime, Holding
from kavka_broker.request.answer_memory import AnswerMemory
from kavka_broker.request.broker import Client as Requester
from kavka_broker.runtime.clock import SystemClock
from tests.support.clocks import StoppedClock
from tests.support.waiting import until

THROTTLE_MS = 200
LARGE_BYTES = 16 * 1024 * 1024  # more than any socket takes at once
HOUR_MS = 3_600_000
BEHIND = "s behind"
AHEAD = 10 * REQUESTS_PER_TURN_MAX
ROUND_TRIPS = 5


class Handlers:
    """Stands in for the dispatcher."""

    def __init__(self) -> None:
        self.begun: list[bytes] = []
        self.waiting: dict[bytes, asyncio.Future[None]] = {}
        self.begun_at: dict[bytes, float] = {}
        self.clients: dict[bytes, Requester] = {}
        self.held, self.of_entity = HeldTime(), HeldTime()
        self.clock = StoppedClock()  # the listener's
        self.audit: Window | None = None
        self.use: UseWindow | None = None
        self.holding = Holding(self.held, self.of_entity)
        self.connections: dict[Connection, None] = {}  # the listener's
        self.answers = AnswerMemory(self.clock, Timers(self.clock, asyncio.get_running_loop()))

    def begin(self, frame: memoryview, peer: object, keep: object) -> Any:
        body = bytes(frame)
        kind = body[:1]
        self.begun.append(body)
        self.begun_at[body] = asyncio.get_running_loop().time()
        if kind == b"e":
            raise ValueError("an answer that cannot be encoded")
        if kind == b"x":
            raise ProtocolViolation("broken")
        client = self.clients[body] = Requester(0, "", 0, "", "", is_holding=kind == b"h")
        if kind == b"t" or body[:2] == b"pt":
            client.throttle(THROTTLE_MS, self.holding)
        exchange = SimpleNamespace(
            api=SimpleNamespace(pipelined=kind in b"ph", name=""),
            client=client,
            pieces=None,
            waiting=None,
            counted_bytes=0,
            written_bytes=0,
            end_making=lambda: None,
            forget=lambda: None,
            is_login=False,
            is_between_nodes=False,
            body=body,
        )
        if kind in b"wph":
            exchange.waiting = self.waiting[body] = asyncio.get_running_loop().create_future()
        elif kind == b"l":
            exchange.pieces = [framed(bytes(LARGE_BYTES))]
        elif kind != b"n":
            exchange.pieces = [framed(body)]
        return exchange

    def sent(self) -> None:
        """Nobody counts the time."""

    def complete(self, exchange: Any) -> None:
        exchange.waiting = None
        if exchange.body[:2] == b"wx":
            raise ValueError("an answer that cannot be encoded")
        exchange.pieces = [framed(exchange.body)]
        if exchange.body[:2] == b"wl":
            exchange.pieces = [framed(bytes(OUTBOX_BYTES_MAX))]
            exchange.written_bytes = OUTBOX_BYTES_MAX + 4


def framed(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def body(text: str) -> bytes:
    return text.encode().ljust(8, b".")


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    def send(self, *texts: str) -> None:
        self.writer.write(b"".join(framed(body(text)) for text in texts))

    async def answer(self) -> bytes:
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return await self._reader.readexactly(size)

    async def is_closed(self) -> bool:
        try:
            return await self._reader.read(1) == b""
        except ConnectionError:
            return True


@asynccontextmanager
async def serving(
    limits: Limits | None = None, clock: StoppedClock | None = None
) -> AsyncIterator[tuple[Handlers, Callable[[], Awaitable[Client]]]]:
    handlers = Handlers()
    handlers.clock = clock or handlers.clock
    timers = Timers(handlers.clock, asyncio.get_running_loop())
    listener = Listener("PLAINTEXT", handlers, limits or Limits(), handlers.clock, timers)  # type: ignore[arg-type]
    handlers.connections = listener.connections
    port = await listener.bind("127.0.0.1", 0)
    await listener.serve()
    clients: list[Client] = []

    async def connect() -> Client:
        clients.append(Client(*await asyncio.open_connection("127.0.0.1", port)))
        return clients[-1]

    try:
        yield handlers, connect
    finally:
        for client in clients:
            client.writer.close()
        await listener.close()


async def heard(connect: Callable[[], Awaitable[Client]]) -> None:
    """All that was sent before, and every end of it, has been heard: what is sent behind it is answered."""
    client = await connect()
    for _ in range(ROUND_TRIPS):
        client.send(BEHIND)
        await client.answer()
    client.writer.close()


def test_answers_leave_in_the_order_of_the_requests() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            client = await connect()
            client.send("p1", "p2", "s3", "n4", "s5")
            await until(lambda: len(handlers.begun) == 5)
            handlers.waiting[body("p2")].set_result(None)
            handlers.waiting[body("p1")].set_result(None)
            assert [await client.answer() for _ in range(4)] == [body(t) for t in ("p1", "p2", "s3", "s5")]

    asyncio.run(scenario())


def test_who_sends_much_ahead_is_served_in_turns() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            flooding, other = await connect(), await connect()
            for client in (flooding, other):
                client.send("s")
                await client.answer()
            handlers.begun.clear()
            names, begun_in_turns = list[str](), list[int]()
            async with asyncio.timeout(60):
                while body("s!") not in handlers.begun:
                    if len(names) - len(handlers.begun) <= AHEAD:  # it goes on until the other one has had its turn
                        names += (more := [f"s{number}" for number in range(len(names), len(names) + AHEAD)])
                        flooding.send(*more)
                    before = len(handlers.begun)
                    await asyncio.sleep(0)
                    begun_in_turns.append(len(handlers.begun) - before)
                    if before == 0 < len(handlers.begun):
                        other.send("s!")
            assert max(begun_in_turns) <= REQUESTS_PER_TURN_MAX + 1
            assert len(handlers.begun) <= len(names), "the other one did not have to wait for all of them"
            assert [await flooding.answer() for _ in names] == [body(name) for name in names]

    asyncio.run(scenario())


def test_only_a_pipelined_request_lets_the_next_begin() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            client = await connect()
            client.send("w1", "s2")
            await until(lambda: bool(handlers.waiting))
            other = await connect()
            other.send("s9")
            assert await other.answer() == body("s9")
            assert handlers.begun == [body("w1"), body("s9")]

            handlers.waiting[body("w1")].set_result(None)

            assert [await client.answer(), await client.answer()] == [body("w1"), body("s2")]

    asyncio.run(scenario())


def test_a_throttled_client_is_answered_first_and_muted_afterwards() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            client = await connect()
            handlers.clock.stop()
            client.send("t1", "s2")
            assert await client.answer() == body("t1")
            await heard(connect)
            assert body("s2") not in handlers.begun
            handlers.clock.go_on()
            assert await client.answer() == body("s2")
            waited = handlers.begun_at[body("s2")] - handlers.begun_at[body("t1")]
            assert waited >= THROTTLE_MS / 1000

    asyncio.run(scenario())


def test_a_connection_that_owes_more_when_its_delay_is_over_waits_on() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            rests = [THROTTLE_MS, 0]
            handlers.holding = Holding(handlers.held, handlers.of_entity, rest_ms=lambda _: rests.pop(0))
            client = await connect()
            client.send("t1", "s2")
            assert await client.answer() == body("t1")
            assert await client.answer() == body("s2")
            waited = handlers.begun_at[body("s2")] - handlers.begun_at[body("t1")]
            assert waited >= 2 * THROTTLE_MS / 1000
            assert not rests

    asyncio.run(scenario())


def test_a_pipelined_request_that_is_charged_mutes_before_its_answer_is_there() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            client = await connect()
            client.send("pt1", "s2")
            await until(lambda: len(handlers.begun) == 2)
            waited = handlers.begun_at[body("s2")] - handlers.begun_at[body("pt1")]
            assert waited >= THROTTLE_MS / 1000
            handlers.waiting[body("pt1")].set_result(None)
            assert [await client.answer(), await client.answer()] == [body("pt1"), body("s2")]
            handlers.clock.stop()  # a connection that is muted now stays so
            client.send("s3")
            async with asyncio.timeout(60):
                assert await client.answer() == body("s3"), "one charge mutes once"

    asyncio.run(scenario())


def test_what_held_the_requests_behind_it_is_charged_before_they_begin() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            client = await connect()
            client.send("h1", "s2")
            await until(lambda: body("h1") in handlers.clients)
            requester = handlers.clients[body("h1")]
            requester.throttle(HOUR_MS, handlers.holding)
            requester.let_go()
            handlers.waiting[body("h1")].set_result(None)
            assert await client.answer() == body("h1")
            assert body("s2") not in handlers.begun
            assert requester.throttle_time_ms == HOUR_MS, "an answer that is made later is to say so too"

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", ["s", "pt", "p", "w", "l"])
def test_idle_is_whose_bytes_neither_come_nor_go(kind: str) -> None:
    """Answered, throttled, waiting, or reading nothing: its peer may be gone, and nobody would hear of it."""

    async def scenario() -> None:
        async with serving(Limits(idle_ms_max=50)) as (handlers, connect):
            handlers.clock.stop()  # it is not idle before it has sent anything
            client = await connect()
            client.send(kind)
            await until(lambda: body(kind) in handlers.begun)
            handlers.clock.go_on()
            await until(lambda: not handlers.connections)

    asyncio.run(scenario())


def test_a_slow_reader_is_not_idle_while_it_reads() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            client = await connect()
            client.send("l")
            await until(lambda: bool(handlers.connections) and body("l") in handlers.begun)
            (connection,) = handlers.connections
            soon_ms = SystemClock().monotonic_ms() + HOUR_MS
            connection.idle_ms(soon_ms)
            assert connection.idle_ms(soon_ms + 1000) == 1000
            assert len(await client.answer()) == LARGE_BYTES
            assert connection.idle_ms(soon_ms + 2000) == 0
            assert connection.idle_ms(soon_ms + 3000) == 1000

    asyncio.run(scenario())


def test_a_violation_closes_this_connection_and_no_other() -> None:
    async def scenario() -> None:
        async with serving() as (_, connect):
            client, other = await connect(), await connect()
            client.send("x1", "s2")
            assert await client.is_closed()
            other.send("s3")
            assert await other.answer() == body("s3")

    asyncio.run(scenario())


def test_a_client_that_leaves_cancels_what_it_waited_for() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            client = await connect()
            client.send("w1")
            await until(lambda: bool(handlers.waiting))
            client.writer.close()
            await until(handlers.waiting[body("w1")].cancelled)

    asyncio.run(scenario())


@pytest.mark.parametrize("held", ["h", "s"])
def test_what_was_sent_whole_before_the_end_is_begun_though_it_has_to_wait(held: str) -> None:
    """Produce with acks=0 has no answer that its sender could wait for before it leaves."""

    async def scenario() -> None:
        async with serving() as (handlers, connect):
            client = await connect()
            names = [held, *(f"n{number}" for number in range(3 * REQUESTS_PER_TURN_MAX))]
            client.writer.write(b"".join(framed(body(name)) for name in names) + framed(body("n!"))[:-1])
            client.writer.close()
            await until(lambda: bool(handlers.begun))
            if held == "h":
                await heard(connect)
                assert [one for one in handlers.begun if one != body(BEHIND)] == [body("h")]
                assert not handlers.waiting[body("h")].done()
                handlers.clients[body("h")].let_go()
                handlers.waiting[body("h")].set_result(None)
            await until(lambda: not handlers.connections)
            assert [one for one in handlers.begun if one != body(BEHIND)] == [body(name) for name in names]

    asyncio.run(scenario())


def test_a_connection_that_has_ended_closes_when_what_held_it_is_done() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            client = await connect()
            client.send("h1")
            await until(lambda: bool(handlers.waiting))
            client.writer.close()
            await heard(connect)
            assert handlers.connections
            handlers.waiting[body("h1")].set_result(None)
            await until(lambda: not handlers.connections)

    asyncio.run(scenario())


def test_connections_are_not_read_while_others_have_used_the_bound_up() -> None:
    """queued.max.request.bytes: they go on in the order in which they came, once there is room."""

    async def scenario() -> None:
        memory = RequestMemory(bytes_max=100_000)
        async with serving(Limits(memory=memory)) as (handlers, connect):
            first, second, other = await connect(), await connect(), await connect()
            large = b"s" + bytes(200_000)
            first.writer.write(framed(large)[:100_000])
            await until(lambda: memory.is_full)
            second.writer.write(framed(large))
            await until(lambda: any(one.is_paused for one in handlers.connections))
            other.send("s1")
            assert await other.answer() == body("s1")
            first.writer.write(framed(large)[100_000:])
            assert await first.answer() == large
            assert await second.answer() == large
            assert memory.used_bytes == 0

    asyncio.run(scenario())


def test_whoever_goes_gives_room_to_those_who_wait() -> None:
    async def scenario() -> None:
        memory = RequestMemory(bytes_max=100_000)
        async with serving(Limits(memory=memory)) as (handlers, connect):
            first, second = await connect(), await connect()
            large = b"s" + bytes(200_000)
            first.writer.write(framed(large)[:100_000])
            await until(lambda: memory.is_full)
            second.writer.write(framed(large))
            await until(lambda: any(one.is_paused for one in handlers.connections))
            first.writer.close()
            assert await second.answer() == large

    asyncio.run(scenario())


def test_a_slow_reader_gets_every_byte_and_holds_up_nobody() -> None:
    async def scenario() -> None:
        async with serving(Limits(request_bytes_max=64 * 1024 * 1024)) as (_, connect):
            slow, other = await connect(), await connect()
            large = b"s" + bytes(range(256)) * 40_000
            slow.writer.write(framed(large) + framed(large) + framed(body("s2")))
            await slow.writer.drain()
            other.send("s3")
            assert await other.answer() == body("s3")
            assert await slow.answer() == large
            assert await slow.answer() == large
            assert await slow.answer() == body("s2")

    asyncio.run(scenario())


@pytest.mark.parametrize(("first", "second"), [("wx", "s"), ("w", "e")])
def test_an_answer_that_cannot_be_written_closes_the_connection(first: str, second: str) -> None:
    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        async with serving() as (handlers, connect):
            client = await connect()
            client.send(first, second)
            await until(lambda: body(first) in handlers.waiting)
            handlers.waiting[body(first)].set_result(None)
            if first == "w":
                assert await client.answer() == body("w")
            async with asyncio.timeout(60):
                assert await client.is_closed()

    asyncio.run(scenario())


def test_a_long_answer_that_waits_for_one_before_it_is_not_followed_by_another() -> None:
    """Else a connection would keep as many as it may have requests under way."""

    async def scenario() -> None:
        async with serving() as (handlers, connect):
            client = await connect()
            client.send("p", "wl1", "wl2", "n")
            await until(lambda: body("wl1") in handlers.waiting)
            handlers.waiting[body("wl1")].set_result(None)
            for _ in range(10):
                await asyncio.sleep(0)
            assert body("wl2") not in handlers.waiting
            handlers.waiting[body("p")].set_result(None)
            assert await client.answer() == body("p")
            assert len(await client.answer()) == OUTBOX_BYTES_MAX
            await until(lambda: body("wl2") in handlers.waiting)
            handlers.waiting[body("wl2")].set_result(None)
            assert len(await client.answer()) == OUTBOX_BYTES_MAX

    asyncio.run(scenario())
