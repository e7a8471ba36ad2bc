"""The simulated world itself: what its loop, processes and connections do."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from kavka_broker.net import acceptor
from tests.sim.events import CHECKOUT, Events
from tests.sim.loop import Deadlock, Escaped, Process, SimLoop
from tests.sim.network import Network
from tests.sim.node import SimClock


def play(scenario: Callable[[SimLoop], Awaitable[Any]], seed: int = 1) -> Any:
    loop = SimLoop(seed)
    loop.network = Network(loop)
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(scenario(loop))
    finally:
        loop.bury()
        asyncio.set_event_loop(None)
        loop.close()


def spawn(loop: SimLoop, process: Process, work: Any) -> asyncio.Task[Any]:
    return loop.create_task(work, context=process.context())


class Echo(asyncio.Protocol):
    """Answers what it gets, and remembers how it ended."""

    def __init__(self) -> None:
        self.received = b""
        self.lost: list[Exception | None] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        if data.startswith(b"say "):
            self.transport.write(data[4:])

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


class World:
    """A server on host `s` and a client on host `c`."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self.server, self.client = Process("s.1", "s"), Process("c.1", "c")
        self.accepted: list[Echo] = []

    def accept(self) -> Echo:
        self.accepted.append(Echo())
        return self.accepted[-1]

    async def listen(self) -> None:
        await spawn(self.loop, self.server, self.loop.create_server(self.accept, "s", 9))

    async def connect(self) -> Echo:
        connected = await spawn(self.loop, self.client, self.loop.create_connection(Echo, "s", 9))
        protocol: Echo = connected[1]
        return protocol


def test_time_is_virtual() -> None:
    async def scenario(loop: SimLoop) -> float:
        await asyncio.sleep(86_400)
        return loop.time()

    assert play(scenario) == 86_400


def test_a_wait_without_an_event_is_a_deadlock() -> None:
    async def scenario(loop: SimLoop) -> None:
        await loop.create_future()

    with pytest.raises(Deadlock):
        play(scenario)


@pytest.mark.parametrize("escape", ["getaddrinfo", "pool"])
def test_the_real_world_is_out_of_reach(escape: str) -> None:
    async def scenario(loop: SimLoop) -> None:
        if escape == "pool":
            await loop.run_in_executor(object(), print)
        else:
            await loop.getaddrinfo("localhost", 9092)

    with pytest.raises(Escaped):
        play(scenario)


def test_a_killed_process_has_no_last_words() -> None:
    words: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            words.append("at last")

    async def scenario(loop: SimLoop) -> list[str]:
        process = Process("p.1", "p")
        spawn(loop, process, work())
        await asyncio.sleep(5)
        process.die()
        await asyncio.sleep(20)
        return list(words)

    assert play(scenario) == []


def test_a_paused_process_does_later_what_came_up_in_order() -> None:
    async def scenario(loop: SimLoop) -> list[tuple[str, float]]:
        done: list[tuple[str, float]] = []
        process = Process("p.1", "p")

        async def work(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            done.append((name, loop.time()))

        for name, seconds in (("first", 2), ("second", 3), ("third", 9)):
            spawn(loop, process, work(name, seconds))
        await asyncio.sleep(1)
        process.is_paused = True
        await asyncio.sleep(4)
        assert not done
        loop.resume(process)
        await asyncio.sleep(10)
        return done

    assert play(scenario) == [("first", 5), ("second", 5), ("third", 9)]


def test_sets_of_tasks_are_ordered_by_their_making() -> None:
    async def scenario(loop: SimLoop) -> list[str]:
        tasks = {loop.create_task(asyncio.sleep(0), name=str(number)) for number in range(50)}
        order = [task.get_name() for task in tasks]
        await asyncio.gather(*tasks)
        return order

    assert play(scenario) == play(scenario, seed=2)


def test_threads_take_effect_at_a_drawn_moment() -> None:
    async def scenario(loop: SimLoop) -> tuple[list[float], float]:
        moments: list[float] = []
        process = Process("p.1", "p")
        process.disk_delay = (5.0, 100.0)
        await spawn(loop, process, asyncio.to_thread(lambda: moments.append(loop.time())))
        return moments, loop.time()

    (moment,), end = play(scenario)
    assert 0.005 <= moment <= 0.1
    assert moment < end
    assert play(scenario, seed=2)[0] != [moment]


def test_bytes_arrive_whole_and_in_order() -> None:
    async def scenario(loop: SimLoop) -> tuple[bytes, bytes]:
        world = World(loop)
        loop.network.weather.split_share = 0.5
        await world.listen()
        client = await world.connect()
        for number in range(100):
            client.transport.write(b"%03d" % number)
        await asyncio.sleep(5)
        world.accepted[0].transport.write(b"done")
        await asyncio.sleep(1)
        return world.accepted[0].received, client.received

    received, answer = play(scenario)
    assert received == b"".join(b"%03d" % number for number in range(100))
    assert answer == b"done"


def test_a_connection_to_a_port_without_a_server_is_refused() -> None:
    async def scenario(loop: SimLoop) -> None:
        await World(loop).connect()

    with pytest.raises(ConnectionRefusedError):
        play(scenario)


def test_the_peer_of_a_killed_process_is_told() -> None:
    async def scenario(loop: SimLoop) -> tuple[int, int]:
        world = World(loop)
        await world.listen()
        client = await world.connect()
        world.server.die()
        await asyncio.sleep(1)
        with pytest.raises(ConnectionRefusedError):
            await world.connect()
        return len(client.lost), len(world.accepted[0].lost)

    assert play(scenario) == (1, 0)


def test_a_paused_process_still_has_its_connections_accepted() -> None:
    async def scenario(loop: SimLoop) -> tuple[bytes, bytes]:
        world = World(loop)
        await world.listen()
        world.server.is_paused = True
        client = await world.connect()
        client.transport.write(b"say hello")
        await asyncio.sleep(60)
        before = client.received
        loop.resume(world.server)
        await asyncio.sleep(1)
        return before, client.received

    assert play(scenario) == (b"", b"hello")


def test_a_cut_link_loses_no_packet_and_resets_no_connection() -> None:
    async def scenario(loop: SimLoop) -> tuple[bytes, bytes, list[Any]]:
        world = World(loop)
        await world.listen()
        client = await world.connect()
        loop.network.cut("s", "c")
        client.transport.write(b"say hello")
        await asyncio.sleep(60)
        heard, before = world.accepted[0].received, client.received
        loop.network.heal("s", "c")
        await asyncio.sleep(1)
        return heard, before + client.received, client.lost

    assert play(scenario) == (b"say hello", b"hello", [])


def test_a_host_without_power_answers_when_it_is_back_and_knows_nothing() -> None:
    async def scenario(loop: SimLoop) -> tuple[int, int]:
        world = World(loop)
        await world.listen()
        client = await world.connect()
        loop.network.power_off("s")
        world.server.die()
        client.transport.write(b"say hello")
        await asyncio.sleep(60)
        before = len(client.lost)
        loop.network.power_on("s")
        await asyncio.sleep(1)
        return before, len(client.lost)

    assert play(scenario) == (0, 1)


def lost_by_the_server(*, is_back: bool) -> list[Exception | None]:
    """How the server's connections have ended two minutes after its client's host has lost its power."""

    async def scenario(loop: SimLoop) -> list[Exception | None]:
        world = World(loop)
        await world.listen()
        await world.connect()
        loop.network.power_off("c")
        world.client.die()
        await asyncio.sleep(10)
        if is_back:
            loop.network.power_on("c")
        await asyncio.sleep(45)
        assert not world.accepted[0].lost, "nothing is said until the kernel asks"
        await asyncio.sleep(65)
        return world.accepted[0].lost

    lost: list[Exception | None] = play(scenario)
    return lost


def test_a_server_finds_out_that_the_host_of_a_client_has_lost_its_power(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [type(error) for error in lost_by_the_server(is_back=True)] == [ConnectionResetError]
    assert [type(error) for error in lost_by_the_server(is_back=False)] == [TimeoutError]
    monkeypatch.setattr(acceptor, "KEEPALIVE", {})
    assert lost_by_the_server(is_back=True) == []


def test_connecting_to_a_dark_host_takes_until_it_is_back() -> None:
    async def scenario(loop: SimLoop) -> float:
        world = World(loop)
        await world.listen()
        loop.network.power_off("s")
        loop.call_later(10, loop.network.power_on, "s")
        await world.connect()
        return loop.time()

    assert 10 < play(scenario) < 30


def test_a_slow_reader_holds_the_writer_back() -> None:
    async def scenario(loop: SimLoop) -> tuple[int, int]:
        world = World(loop)
        await world.listen()
        client = await world.connect()
        world.accepted[0].transport.pause_reading()
        client.transport.write(bytes(3_000_000))
        await asyncio.sleep(1)
        waiting = client.transport.get_write_buffer_size()
        world.accepted[0].transport.resume_reading()
        await asyncio.sleep(30)
        return waiting, client.transport.get_write_buffer_size()

    waiting, left = play(scenario)
    assert waiting >= 1_900_000
    assert left == 0


def test_a_busy_process_does_nothing_else_meanwhile() -> None:
    async def scenario(loop: SimLoop) -> list[tuple[str, float]]:
        done: list[tuple[str, float]] = []
        process = Process("p.1", "p")

        async def work(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            done.append((name, loop.time()))

        for name, seconds in (("first", 1), ("second", 2), ("third", 9)):
            spawn(loop, process, work(name, seconds))
        await asyncio.sleep(0.5)
        loop.occupy(process, 1.0)
        loop.occupy(process, 2.5)  # one behind the other: until 4.0
        process.is_paused = True
        await asyncio.sleep(3.0)
        loop.resume(process)  # and it is busy all the same
        await asyncio.sleep(10)
        return done

    assert play(scenario) == [("first", 4.0), ("second", 4.0), ("third", 9.0)]


def test_the_steps_of_a_slow_process_take_time() -> None:
    async def scenario(loop: SimLoop) -> list[float]:
        moments: list[float] = []
        process = Process("p.1", "p")
        process.step_seconds = 0.5

        async def work() -> None:
            for _ in range(3):
                moments.append(loop.time())
                await asyncio.sleep(0)

        await spawn(loop, process, work())
        return moments

    assert play(scenario) == [0.0, 0.5, 1.0]


def test_who_waits_for_less_than_a_nanosecond_gets_on() -> None:
    """Times are rounded: a timer may come a little before its moment, and is set again for what is left."""

    async def scenario(loop: SimLoop) -> int:
        clock, chance, looks = SimClock(loop), Random(1), 0
        for _ in range(2_000):
            deadline_ms = clock.monotonic_ms() + chance.random() * 10
            while clock.monotonic_ms() < deadline_ms:
                looks += 1
                await asyncio.sleep((deadline_ms - clock.monotonic_ms()) / 1000)
        return looks

    assert 2_000 < play(scenario) <= 4_000


def test_a_process_that_is_busy_for_any_time_gets_on() -> None:
    async def scenario(loop: SimLoop) -> float:
        process = Process("p.1", "p")
        process.step_seconds = 0.1 / 3
        for _ in range(50):
            await spawn(loop, process, asyncio.sleep(0.01))
        return loop.time()

    assert play(scenario) > 1


def test_a_digest_is_the_same_in_another_checkout() -> None:
    """Brokers log where their token keys are, which is in the checkout."""

    def digest_in(root: str) -> str:
        loop = SimLoop(1)
        try:
            Events(loop).say("node", f"token_keys.read url=file://{root}/tests/sim/issuer.json keys=first")
            return loop.digest
        finally:
            loop.close()

    assert digest_in(CHECKOUT) == digest_in("")
    assert digest_in(CHECKOUT) != digest_in("/elsewhere")
