"""How many connections listeners hold, together and each (KIP-402): who waits, who is closed, and who goes for whom."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from kavka_broker.core.audit.events import Denied, Window
from kavka_broker.core.audit.usage import Throttling, UseWindow
from kavka_broker.core.quota.entity import IpEntity
from kavka_broker.loop.slices import at_once
from kavka_broker.loop.timers import Timers
from kavka_broker.net.acceptor import SocketAcceptor
from kavka_broker.net.connection_quotas import ConnectionBounds, ConnectionQuotas
from kavka_broker.net.connection_rates import RateBounds
from kavka_broker.net.limits import Limits
from kavka_broker.net.listener import Listener
from kavka_broker.quotas.entity_usage import EntityUsage
from tests.support.clocks import StoppedClock
from tests.support.waiting import until
from tests.unit.net.test_connection import Client, Handlers, body


class Ports:
    """Two listeners, A and B, whose connections are counted together."""

    def __init__(self, quotas: ConnectionQuotas) -> None:
        self.clock = clock = StoppedClock()
        timers = Timers(clock, asyncio.get_running_loop())
        self.quotas = quotas
        self.now_ms = clock.monotonic_ms
        self.handlers = handlers = cast(Any, Handlers())
        self.listeners = {name: Listener(name, handlers, Limits(), clock, timers, quotas) for name in ("A", "B")}
        self._ports: dict[str, int] = {}
        self._clients: list[Client] = []

    async def open(self) -> None:
        for name, listener in self.listeners.items():
            self._ports[name] = await listener.bind("127.0.0.1", 0)
            await listener.serve()

    def of_addresses(self) -> list[EntityUsage]:
        """What the limits of addresses do."""
        return at_once(self.quotas.rates.lines(int(self.now_ms())))

    async def close(self) -> None:
        for client in self._clients:
            client.writer.close()
        for listener in self.listeners.values():
            await listener.close()

    async def connect(self, name: str) -> Client:
        """A connection of which the kernel knows, and that has asked something."""
        client = Client(*await asyncio.open_connection("127.0.0.1", self._ports[name]))
        self._clients.append(client)
        client.send("s1")
        return client

    async def served(self, name: str) -> Client:
        client = await self.connect(name)
        await answered(client)
        return client

    @property
    def accepted_count(self) -> int:
        return sum(listener.accepted_count for listener in self.listeners.values())


@asynccontextmanager
async def two_listeners(protected: str = "", **bounds: Any) -> AsyncIterator[Ports]:
    ports = Ports(ConnectionQuotas(ConnectionBounds(**bounds), protected))
    await ports.open()
    try:
        yield ports
    finally:
        await ports.close()


async def answered(client: Client) -> None:
    async with asyncio.timeout(60):
        assert await client.answer() == body("s1")


async def serves(client: Client) -> None:
    client.send("s1")
    await answered(client)


async def ended(client: Client) -> None:
    async with asyncio.timeout(60):
        assert await client.is_closed()


def test_who_comes_when_all_are_taken_waits_until_somebody_leaves() -> None:
    async def scenario() -> None:
        async with two_listeners(connections_max=2) as ports:
            first, second = await ports.served("A"), await ports.served("B")
            waiting = [await ports.connect("A"), await ports.connect("B")]
            await serves(first)
            assert ports.accepted_count == 2
            second.writer.close()
            while ports.accepted_count < 3:
                await asyncio.sleep(0)
            first.writer.close()
            await asyncio.gather(*(answered(one) for one in waiting))

    asyncio.run(scenario())


def test_a_listener_may_have_a_bound_of_its_own() -> None:
    async def scenario() -> None:
        async with two_listeners(per_listener={"A": 1}) as ports:
            await ports.served("A")
            waiting = await ports.connect("A")
            await ports.served("B")
            assert ports.accepted_count == 2
            ports.quotas.alter(ConnectionBounds())
            await answered(waiting)

    asyncio.run(scenario())


def test_for_a_broker_the_client_that_was_idle_the_longest_goes() -> None:
    async def scenario() -> None:
        async with two_listeners(protected="A", connections_max=2) as ports:
            first, second = await ports.served("B"), await ports.served("B")
            second_since = next(reversed(ports.listeners["B"].connections)).last_active_ms
            while ports.now_ms() <= second_since:
                await asyncio.sleep(0)
            await serves(first)
            broker = await ports.served("A")
            await ended(second)
            await serves(first)
            waiting = await ports.connect("B")
            await serves(broker)
            assert ports.accepted_count == 3
            broker.writer.close()
            await answered(waiting)

    asyncio.run(scenario())


def test_a_protected_listener_alone_waits_like_any_other() -> None:
    quotas = ConnectionQuotas(ConnectionBounds(connections_max=1), "A")
    quotas.join("A", {}, lambda: None)
    assert quotas.has_room("A")
    quotas.take("A")
    assert not quotas.has_room("A")
    quotas.join("B", {}, lambda: None)
    assert not quotas.has_room("A"), "the bound of all is also that of each"
    quotas.alter(ConnectionBounds(connections_max=1, per_listener={"A": 2}))
    assert quotas.has_room("A")
    assert not quotas.has_room("B")


def test_a_lower_bound_ends_as_many_as_are_too_many() -> None:
    async def scenario() -> None:
        async with two_listeners(protected="A") as ports:
            broker = await ports.served("A")
            clients = [await ports.served("B") for _ in range(3)]
            ports.quotas.alter(ConnectionBounds(connections_max=2))
            await asyncio.gather(ended(clients[0]), ended(clients[1]))
            await asyncio.gather(serves(broker), serves(clients[2]))

    asyncio.run(scenario())


def test_an_address_is_counted_over_all_listeners_and_closed_above_its_bound() -> None:
    async def scenario() -> None:
        async with two_listeners(per_ip_max=5, per_address={"127.0.0.1": 2}) as ports:
            first, _ = await ports.served("A"), await ports.served("B")
            await ended(await ports.connect("B"))
            await serves(first)
            first.writer.close()
            while len(ports.listeners["A"].connections):
                await asyncio.sleep(0)
            await ports.served("B")

    asyncio.run(scenario())


def test_the_audit_trail_tells_which_addresses_are_refused_and_held() -> None:
    async def scenario() -> None:
        async with two_listeners(per_ip_max=5, per_address={"127.0.0.1": 1}) as ports:
            ports.handlers.audit, ports.handlers.use = Window(0), UseWindow(0)
            await ports.served("A")
            await ended(await ports.connect("B"))
            (refused,) = ports.handlers.audit.take(1)
            assert refused.happening == Denied("User:ANONYMOUS", "127.0.0.1", "CONNECT", "listener", "B")
        async with two_listeners(per_ip_max=50) as ports:
            ports.handlers.audit, ports.handlers.use = Window(0), UseWindow(0)
            ports.quotas.rates.limit_addresses({IpEntity("127.0.0.1"): 0.0})
            await ports.connect("A")
            await until(lambda: len(ports.handlers.use))
            ((held, times),) = ports.handlers.use.take(1)
            assert isinstance(held, Throttling)
            assert held[:5] == ("User:ANONYMOUS", "127.0.0.1", "", "connection_creation", '{"ip": "127.0.0.1"}')
            assert (held.limit, times) == (0.0, 1)

    asyncio.run(scenario())


def test_without_descriptors_it_tries_again_a_moment_later(monkeypatch: pytest.MonkeyPatch) -> None:
    accept, errors = socket.socket.accept, [OSError(errno.EMFILE, "Too many open files")]

    def fails_once(listening: socket.socket) -> tuple[socket.socket, Any]:
        if errors:
            raise errors.pop()
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", fails_once)

    async def scenario() -> None:
        async with two_listeners() as ports:
            taking = ports.listeners["A"].acceptor
            assert isinstance(taking, SocketAcceptor)
            taking.retry_seconds = 0.001
            await ports.served("A")
            assert not errors

    asyncio.run(scenario())


def test_what_could_not_be_made_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with two_listeners(connections_max=1) as ports:
            loop = asyncio.get_running_loop()
            connect, errors = loop.connect_accepted_socket, [OSError(errno.ENOTCONN, "not connected")]

            async def fails_once(*args: Any) -> Any:
                if errors:
                    raise errors.pop()
                return await connect(*args)

            monkeypatch.setattr(loop, "connect_accepted_socket", fails_once)
            await ended(await ports.connect("A"))
            await ports.served("A")

    asyncio.run(scenario())


class Made:
    """A connection as far as quotas know it."""

    def __init__(self, last_active_ms: float = 0) -> None:
        self.last_active_ms = last_active_ms
        self.reason = ""

    def close(self, reason: str) -> None:
        self.reason = reason


def test_those_that_were_still_being_made_go_for_a_broker_once_they_are_there() -> None:
    quotas = ConnectionQuotas(ConnectionBounds(connections_max=2), "B")
    connections: dict[Any, None] = {}
    quotas.join("A", connections, lambda: None)
    quotas.join("B", {}, lambda: None)
    quotas.take("A")
    quotas.take("A")
    quotas.take("B")  # nobody is there who could go
    made = [Made(), Made()]
    for one in made:
        connections[one] = None
        assert quotas.admits(cast(Any, one), "10.0.0.1")
    assert [bool(one.reason) for one in made] == [True, False]


def test_nobody_goes_for_one_that_is_refused() -> None:
    quotas = ConnectionQuotas(ConnectionBounds(connections_max=2, per_ip_max=1), "B")
    connections: dict[Any, None] = {}
    quotas.join("A", connections, lambda: None)
    quotas.join("B", {}, lambda: None)
    made = [Made(1), Made(2)]
    for one, is_admitted in zip(made, (True, False), strict=True):
        quotas.take("A")
        connections[one] = None
        assert quotas.admits(cast(Any, one), "10.0.0.1") is is_admitted
    quotas.take("B")
    assert not made[0].reason


def test_a_listener_takes_no_more_until_the_delay_is_over() -> None:
    async def scenario() -> None:
        async with two_listeners() as ports:
            ports.clock.stop()
            ports.quotas.rates.alter(RateBounds(of_listener={"A": 1}))
            for _ in range(11):
                await ports.served("A")  # ten seconds' worth, and one more
            waiting = await ports.connect("A")
            await ports.served("B")
            assert ports.listeners["A"].accepted_count == 11
            ports.clock.go_on()
            await answered(waiting)  # when the delay is over

    asyncio.run(scenario())


def test_a_connection_above_the_rate_of_its_address_is_held_unheard_and_closed() -> None:
    async def scenario() -> None:
        async with two_listeners() as ports:
            ports.quotas.rates.limit_addresses({IpEntity("127.0.0.1"): 1.0})
            began_ms = ports.now_ms()
            ports.clock.stop()  # the eleventh comes at once
            served = [await ports.served("A") for _ in range(10)]
            refused = await ports.connect("A")
            await until(lambda: ports.listeners["A"].accepted_count == 11)
            await serves(served[0])
            held = list(ports.listeners["A"].connections)[-1]
            assert held.is_muted
            assert held.muted_until_ms > ports.listeners["A"].clock.monotonic_ms()
            assert [line.held_connections for line in ports.of_addresses()] == [1]
            ports.clock.go_on()
            async with asyncio.timeout(60):
                assert await refused.is_closed()
            assert ports.listeners["A"].refused_count == 1
            await serves(served[9])
            (line,) = ports.of_addresses()
            assert (line.entity, line.limit, line.shares, line.held_connections) == (IpEntity("127.0.0.1"), 1.0, 1, 0)
            assert line.usage > 0
            assert 0 < line.held_ms <= ports.now_ms() + 1 - began_ms, "it was really held, in whole milliseconds"
            assert line.held_ms == ports.of_addresses()[0].held_ms, "and is no more"

    asyncio.run(scenario())


def test_connections_that_are_held_are_bounded() -> None:
    async def scenario() -> None:
        async with two_listeners() as ports:
            ports.listeners["A"].held_max = 1
            ports.quotas.rates.limit_addresses({IpEntity("127.0.0.1"): 0.0})
            held, refused = await ports.connect("A"), await ports.connect("A")
            async with asyncio.timeout(60):
                assert await refused.is_closed()
            assert [one.is_muted for one in ports.listeners["A"].connections] == [True]
            held.writer.close()

    asyncio.run(scenario())
