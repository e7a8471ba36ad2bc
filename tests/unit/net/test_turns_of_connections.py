"""Connections take turns by their client, however many it has, and however often it connects."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count, pairwise
from struct import pack
from types import SimpleNamespace
from typing import Any

from kavka_broker.core.fair_queueing import QUANTUM_NS
from kavka_broker.loop.timers import Timers
from kavka_broker.loop.turns import CONNECTION_NS, NEWCOMERS, Turns
from kavka_broker.net.inbox import LITTLE_BYTES
from kavka_broker.net.limits import Limits
from kavka_broker.net.listener import Listener
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_request_header
from kavka_broker.quotas.sensor import HeldTime, Holding
from kavka_broker.request.broker import Client as Requester
from kavka_broker.runtime.clock import SystemClock
from tests.support.waiting import until

CONNECTIONS = 8
REQUESTS = 100
MANY = 150
HOUR_MS = 3_600_000
READINGS_PER_QUANTUM = 4
API_VERSIONS = 18
ANSWER = pack(">i", 0)
TURNS_MAX = 5
"""Turns of others that go by before a light client's: the loop's own work is measured in large steps here."""


class Handlers:
    """Stands in for the dispatcher: every request is begun, noted by its client, and answered."""

    audit = use = None

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.throttle_time_ms = 0

    def begin(self, frame: memoryview, _peer: object, _keep: object) -> Any:
        client_id = read_request_header(frame)[0].client_id or ""
        self.begun.append(client_id)
        client = Requester(0, client_id, 0, "", "")
        client.throttle(self.throttle_time_ms, Holding(HeldTime()))
        return SimpleNamespace(
            api=SimpleNamespace(pipelined=False, name=""),
            client=client,
            pieces=[ANSWER],
            waiting=None,
            counted_bytes=0,
            written_bytes=0,
            end_making=lambda: None,
            forget=lambda: None,
            is_login=False,
            is_between_nodes=False,
        )

    def sent(self) -> None:
        """It measures no time."""


def framed(client_id: str) -> bytes:
    header = encode_request_header(RequestHeader(API_VERSIONS, 0, 7, client_id))
    return pack(">i", len(header)) + header


class Served:
    """A listener with its turns, and the clients of the test."""

    def __init__(self, listener: Listener, handlers: Handlers, port: int) -> None:
        self.handlers, self.turns, self.connections = handlers, listener.limits.turns, listener.connections
        self._port = port
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        made = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers.append(made[1])
        return made

    async def ask(self, client_id: str) -> None:
        """Ask once, on a connection of its own."""
        reader, writer = await self.connect()
        writer.write(framed(client_id))
        await reader.readexactly(len(ANSWER))

    def close(self) -> None:
        for writer in self._writers:
            writer.close()


@asynccontextmanager
async def serving(readings: Callable[[], int]) -> AsyncIterator[Served]:
    handlers, clock, limits = Handlers(), SystemClock(), Limits(turns=Turns(readings))
    timers = Timers(clock, asyncio.get_running_loop())
    listener = Listener("PLAINTEXT", handlers, limits, clock, timers)  # type: ignore[arg-type]
    port = await listener.bind("127.0.0.1", 0)
    await listener.serve()
    served = Served(listener, handlers, port)
    try:
        yield served
    finally:
        served.close()
        await listener.close()


def run(
    scenario: Callable[[Served], Coroutine[Any, Any, None]], readings_per_quantum: int = READINGS_PER_QUANTUM
) -> None:
    async def main() -> None:
        async with serving(count(step=QUANTUM_NS // readings_per_quantum).__next__) as served, asyncio.timeout(60):
            await scenario(served)

    asyncio.run(main())


def test_a_client_with_one_connection_does_not_wait_for_all_of_one_with_many() -> None:
    """A turn begins two or three requests; without turns 64 of each connection are begun before others are read."""

    async def scenario(served: Served) -> None:
        begun = served.handlers.begun
        reader, light = await served.connect()
        for _ in range(CONNECTIONS):
            (await served.connect())[1].write(framed("many") * REQUESTS)
        await until(lambda: "many" in begun)
        waits = list[int]()
        for _ in range(5):
            before = len(begun)
            light.write(framed("light"))
            await reader.readexactly(len(ANSWER))
            waits.append(len(begun) - before)
        *others, _ = sorted(waits)  # the kernel may be late once
        assert max(others) <= 200, "it waited for more than some turns of the other"
        assert begun.count("many") < CONNECTIONS * REQUESTS

    run(scenario)


class Anew:
    """A client that connects for each of its requests, on so many connections at a time."""

    def __init__(self, served: Served, client_id: Callable[[int], str]) -> None:
        self._served, self._client_id = served, client_id
        self._number = 0
        self._asking = [asyncio.create_task(self._ask()) for _ in range(CONNECTIONS)]

    async def _ask(self) -> None:
        while True:
            self._number += 1
            await self._served.ask(self._client_id(self._number))

    async def stop(self) -> None:
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)


def test_a_connection_for_each_request_gets_no_more_than_a_share() -> None:
    """What a client has had on new connections counts for the newcomers of its address as well."""

    async def scenario(served: Served) -> None:
        reader, light = await served.connect()
        anew = Anew(served, lambda _: "anew")
        await until(lambda: served.handlers.begun.count("anew") >= CONNECTIONS)
        light.write(framed("steady") * REQUESTS)
        before = served.turns.spent["ANONYMOUS", "anew"].loop_ns
        await reader.readexactly(REQUESTS * len(ANSWER))
        had_ns = served.turns.spent["ANONYMOUS", "anew"].loop_ns - before
        steady_ns = served.turns.spent["ANONYMOUS", "steady"].loop_ns
        assert had_ns <= 1.1 * steady_ns + TURNS_MAX * QUANTUM_NS
        assert served.turns.spent[NEWCOMERS].loop_ns >= had_ns
        await anew.stop()

    run(scenario)


def test_a_new_connection_of_a_known_client_waits_for_no_newcomers() -> None:
    async def scenario(served: Served) -> None:
        reader, light = await served.connect()
        light.write(framed("light"))
        await reader.readexactly(len(ANSWER))
        (connection,) = served.connections
        newcomers = served.turns.join_newcomers("PLAINTEXT", "127.0.0.1")
        served.turns.charge_too(newcomers, 100 * QUANTUM_NS)
        await served.turns.granted(served.turns.own)  # a slice that lasts
        served.turns.wait(newcomers, lambda: True)
        again, writer = await served.connect()
        writer.write(framed("light"))
        await again.readexactly(len(ANSWER))
        assert {one.peer.flow for one in served.connections} == {connection.peer.flow}
        assert newcomers.waiting, "who has had less goes first"

    run(scenario, 10_000)


def test_a_newcomer_that_waits_for_its_turn_waits_where_it_is() -> None:
    """Its client is known meanwhile, and there is room again for what it has sent."""

    async def scenario(served: Served) -> None:
        newcomers = served.turns.join_newcomers("PLAINTEXT", "127.0.0.1")
        await served.turns.granted(served.turns.own)  # a slice that lasts
        served.turns.wait(newcomers, lambda: True)
        _, writer = await served.connect()
        writer.write(framed("light"))
        await until(lambda: len(newcomers.waiting) == 2)
        (connection,) = served.connections
        served.turns.join("ANONYMOUS", "light")
        connection.resume_writing()
        assert len(newcomers.waiting) == 2
        connection.abort()
        await until(lambda: not served.connections)
        assert len(newcomers.waiting) == 1

    run(scenario, 10_000)


def test_a_connection_is_that_of_its_first_client() -> None:
    """Who named another client in each request would be new in each of its turns."""

    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        for name in ("first", "second", "third"):
            writer.write(framed(name))
            await reader.readexactly(len(ANSWER))
        (connection,) = served.connections
        assert connection.peer.flow is not None
        assert connection.peer.flow.client == ("ANONYMOUS", "first")
        assert not {("ANONYMOUS", "second"), ("ANONYMOUS", "third")} & served.turns.spent.keys()

    run(scenario)


def test_connections_are_taken_in_turns() -> None:
    """While a client waits that has had less, at most a quantum's worth is taken from the kernel."""

    async def scenario(served: Served) -> None:
        taken, turns = list[int](), served.turns
        busy = turns.join("alice", "busy")

        def take_turn() -> bool:
            taken.append(len(served.connections))
            turns.charge(busy, QUANTUM_NS)
            turns.wait(busy, take_turn)
            return True

        turns.wait(busy, take_turn)
        connecting = [asyncio.create_task(served.connect()) for _ in range(5 * CONNECTIONS)]
        await until(lambda: len(served.connections) == len(connecting))
        turns.forget(busy, take_turn)
        assert max(after - before for before, after in pairwise(taken)) <= CONNECTIONS
        await asyncio.gather(*connecting)

    run(scenario)


def test_connections_whose_delays_end_at_once_are_closed_some_a_turn() -> None:
    """A client that is told to wait leaves and comes back at once; its former connections end with their delays."""

    async def scenario(served: Served) -> None:
        served.handlers.throttle_time_ms = HOUR_MS
        throttled = [await served.connect() for _ in range(MANY)]
        for reader, writer in throttled:
            writer.write(framed("throttled"))
            await reader.readexactly(len(ANSWER))
            writer.close()
        await until(lambda: all(connection.is_muted for connection in served.connections))
        for connection in list(served.connections):
            assert connection.mute is not None
            connection.mute.fire()
        counted = [len(served.connections)]
        while served.connections:
            await asyncio.sleep(0)
            counted.append(len(served.connections))
        assert counted[0] == MANY
        assert max(before - after for before, after in pairwise(counted)) <= QUANTUM_NS // CONNECTION_NS

    run(scenario)


def test_a_connection_that_waits_for_its_turn_is_not_read_on() -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.write(framed("sender"))
        await reader.readexactly(len(ANSWER))
        (connection,) = served.connections
        other = served.turns.join("alice", "other")
        flow = connection.peer.flow
        assert flow is not None
        await served.turns.granted(served.turns.own)  # a slice that lasts
        served.turns.wait(other, lambda: True)
        served.turns.charge(flow, 100 * QUANTUM_NS)
        writer.write(framed("sender") * REQUESTS)
        await until(lambda: bool(flow.waiting))
        assert connection.is_paused
        served.turns.over(other, 0)
        await reader.readexactly(REQUESTS * len(ANSWER))
        assert not connection.is_paused

    run(scenario, 10_000)


def test_of_a_new_connection_little_is_read_at_once() -> None:
    """What a crowd of clients has sent ahead is not kept for them while they wait."""

    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        await until(lambda: len(served.connections) == 1)
        (connection,) = served.connections
        assert len(connection.get_buffer(-1)) == LITTLE_BYTES
        writer.write(framed("sender"))
        await reader.readexactly(len(ANSWER))
        assert len(connection.get_buffer(-1)) > LITTLE_BYTES

    run(scenario)
