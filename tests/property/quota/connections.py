"""Clients that send as they like over real connections, and a broker that charges what they move.

The connection and the quotas are the broker's own; the socket, the clock and the answers are the test's, so that a run
of minutes takes no time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct, pack
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from kavka_broker.core.quota.entity import Entity, IpEntity, QuotaKey, TopicEntity
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.loop.slices import Cost, at_once
from kavka_broker.loop.turns import Flow, Turns, Waiter
from kavka_broker.net.connection import Connection
from kavka_broker.net.limits import Limits
from kavka_broker.quotas.client_quotas import FETCH, PRODUCE, ClientQuotas
from kavka_broker.request.broker import Client as Requester

LIMIT = 10_000
WINDOW = SampleWindow()
CLIENT = ("alice", "etl")
TOPIC = "t"
CONNECTIONS = 3
DAY_NS = 86_400 * 1_000_000_000
FORMAT = Struct(">iiB")  # of a request's body: for how long its answer waits, its size, whether it is a fetch


class Event:
    """A thing to come, in the test's time. Stands in for a timer and for an answer that waits."""

    def __init__(self, due_ms: float) -> None:
        self.due_ms = due_ms
        self.calls: list[Callable[[Any], object]] = []
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def add_done_callback(self, call: Callable[[Any], object]) -> None:
        self.calls.append(call)


@dataclass
class World:
    """Time, and what is to come in it. It stands in for the clock and the timers."""

    now_ms: float = 0.0
    events: list[Event] = field(default_factory=list)

    def monotonic_ms(self) -> float:
        return self.now_ms

    def after(self, delay_ms: float, callback: Callable[[], object]) -> Event:
        event = Event(self.now_ms + delay_ms)
        event.add_done_callback(lambda _: callback())
        self.events.append(event)
        return event

    def advance(self, to_ms: float) -> None:
        while due := [event for event in self.events if event.due_ms <= to_ms and not event.is_cancelled]:
            event = min(due, key=lambda one: one.due_ms)
            self.events.remove(event)
            self.now_ms = max(self.now_ms, event.due_ms)
            for call in event.calls:
                call(event)
        self.now_ms = to_ms


@dataclass
class Taken:
    """What passed, with its time, and for how long each connection was told to wait."""

    passed: dict[str, list[tuple[float, int]]] = field(default_factory=lambda: {PRODUCE: [], FETCH: []})
    told: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    begun: dict[int, list[int]] = field(default_factory=dict)  # the sizes of each connection's requests, in order


class Broker:
    """Charges as the handlers do: Produce as it begins, Fetch as it is answered, with what it then may send."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.quotas = ClientQuotas(WINDOW)
        limits: dict[Entity | IpEntity, float] = {Entity(*CLIENT): LIMIT}
        self.quotas.update(dict.fromkeys((QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE), limits))
        self.taken = Taken()
        self.answered = 0

    def begin(self, frame: memoryview, peer: Any, keep: object) -> Any:
        waits_ms, size, is_fetch = FORMAT.unpack_from(frame)
        client = Requester(0, CLIENT[1], 0, "", "", len(frame), CLIENT[0])
        waiting = self.world.after(waits_ms, lambda: None) if waits_ms else None
        api = SimpleNamespace(pipelined=not is_fetch, name="")
        exchange = SimpleNamespace(
            api=api, client=client, counted_bytes=0, written_bytes=0, is_login=False, is_between_nodes=False,
            pieces=None,
            waiting=waiting, wanted=size, number=peer.number, end_making=lambda: None, forget=lambda: None,
        )  # fmt: skip
        self.taken.begun.setdefault(peer.number, []).append(size)
        if not is_fetch:
            self.charge(exchange, PRODUCE, len(frame))
        elif waiting is None:
            self.charge(exchange, FETCH, size)
        self.answered += waiting is None
        return exchange

    def sent(self) -> None:
        """Nobody counts the time."""

    def complete(self, exchange: Any) -> None:
        exchange.waiting = None
        self.answered += 1
        if not exchange.api.pipelined:
            self.charge(exchange, FETCH, exchange.wanted)

    def charge(self, exchange: Any, quota_type: str, size: int) -> None:
        now_ms = int(self.world.now_ms)
        if quota_type == PRODUCE:
            delay_ms = self.quotas.produce(*CLIENT, size, now_ms)
        else:
            size = self.quotas.fetch_clamp(*CLIENT, size, now_ms)
            delay_ms = self.quotas.fetch(*CLIENT, size, now_ms)
        if quota_type == PRODUCE or not delay_ms:
            self.taken.passed[quota_type].append((self.world.now_ms, size))
        if delay_ms:
            exchange.client.throttle(delay_ms, self.quotas.held(quota_type, *CLIENT, now_ms))
            told = self.taken.told.setdefault(exchange.number, [])
            told.append((self.world.now_ms, self.world.now_ms + delay_ms))

    def held_ms(self) -> int:
        """What the metrics say of all connections together."""
        now_ms = int(self.world.now_ms)
        lines = (line for quota in self.quotas.by_type.values() for line in at_once(quota.usages(now_ms)))
        return sum(line.held_ms_total for line in lines)


class BrokerOfTopic(Broker):
    """Limits no client but the topic that all of them use; a partition of it is as good as another."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.quotas.update({})
        limits = ((key, TopicEntity(TOPIC), LIMIT) for key in self.quotas.topics_by_key)
        self.quotas.limit_topic(TOPIC, b"", limits)

    def charge(self, exchange: Any, quota_type: str, size: int) -> None:
        now_ms = int(self.world.now_ms)
        self.taken.passed[quota_type].append((self.world.now_ms, size))
        topics = self.quotas.produced if quota_type == PRODUCE else self.quotas.fetched
        for delay_ms, limit in at_once(topics.limited[TOPIC].charge({size % 2: size}, now_ms, Cost())):
            exchange.client.throttle(delay_ms, limit.holding())
            self.taken.told.setdefault(exchange.number, []).append((self.world.now_ms, self.world.now_ms + delay_ms))


class AtOnce(Turns):
    """Turns of no loop: whoever waits for one has it, and has it without end."""

    quantum_ns = DAY_NS

    def wait(self, flow: Flow, waiter: Waiter) -> None:
        waiter()


class Socket:
    """The client's end: what it has sent waits here until the broker reads it."""

    def __init__(self, world: World, broker: Broker, number: int) -> None:
        limits = Limits(turns=AtOnce())
        listener = SimpleNamespace(
            dispatcher=broker, limits=limits, clock=world, timers=world, name="PLAINTEXT", received_bytes=0,
            opened=lambda _: None,
        )  # fmt: skip
        self.connection = Connection(listener)
        self.connection._transport = self  # type: ignore[assignment]
        self.connection._flow = self.connection._turns.join(*CLIENT)
        self.connection.peer = SimpleNamespace(number=number)  # type: ignore[assignment]
        self.connection.outbox = SimpleNamespace(  # type: ignore[assignment]
            waiting_bytes=0, sent_bytes=0, gather=lambda: None, flush=lambda: None
        )
        self._unread = bytearray()
        self._is_paused = False

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False

    def send(self, request: "Request", waits_ms: int) -> None:
        size = FORMAT.size if request.is_fetch else request.size
        head = FORMAT.pack(waits_ms, request.size, request.is_fetch)
        self._unread += pack(">i", size) + head.ljust(size, b".")
        self.read()

    def read(self) -> None:
        while self._unread and not self._is_paused:
            room = self.connection.get_buffer(-1)
            piece = self._unread[: len(room)]
            if not piece:
                return
            room[: len(piece)] = piece
            del self._unread[: len(piece)]
            self.connection.buffer_updated(len(piece))


@dataclass(frozen=True)
class Request:
    """By which connection, how long after the last, how large, and which way the bytes go."""

    number: int
    pause_ms: int
    size: int
    is_fetch: bool


#: The pauses of one run, in ms: none at all; short ones; a burst, silence until the window is empty, another burst.
PAUSES = st.sampled_from([(0,), (0, 0, 0, 1, 50, 200), (0,) * 20 + (12_000,)])
KINDS = st.sampled_from([(False,), (True,), (False, True)])
REQUESTS = st.tuples(PAUSES, KINDS).flatmap(
    lambda chosen: st.lists(
        st.builds(
            Request,
            st.integers(0, CONNECTIONS - 1),
            st.sampled_from(chosen[0]),
            st.sampled_from([LIMIT // 10, LIMIT // 2, LIMIT]),
            st.sampled_from(chosen[1]),
        ),
        min_size=50,  # fewer do not fill the window
        max_size=100,
    )
)
WAITS = st.one_of(
    st.sampled_from([[0] * CONNECTIONS, [5_000] * CONNECTIONS]),
    st.lists(st.sampled_from([0, 1, 20, 5_000]), min_size=CONNECTIONS, max_size=CONNECTIONS),
)


def run(requests: list[Request], waits_ms: list[int], kind: type[Broker] = Broker) -> Broker:
    """Send all of it, and go on until all of it is answered."""
    world = World()
    broker = kind(world)
    sockets = [Socket(world, broker, number) for number in range(CONNECTIONS)]

    def step(to_ms: float) -> None:
        world.advance(to_ms)
        for socket in sockets:
            socket.read()

    for request in requests:
        for _ in range(5):
            step(world.now_ms + request.pause_ms / 5)
        sockets[request.number].send(request, waits_ms[request.number])
    while broker.answered < len(requests):
        step(world.now_ms + 500)
        assert world.now_ms < 3_600_000, "what was sent is taken some time"
    return broker


def assert_bounded(broker: Broker, *, forgets: bool) -> None:
    """Over any span no more passes than the limit and a window's burst, one request of each connection aside.

    That it is too much is known once it is charged. What `forgets` with the window allows it again in each window.
    """
    burst = WINDOW.value_max(LIMIT)
    for passed in broker.taken.passed.values():
        largest = max((size for _, size in passed), default=0)
        for start, (from_ms, _) in enumerate(passed):
            total = 0
            for to_ms, size in passed[start:]:
                windows = 1 + (to_ms - from_ms) // ((WINDOW.count - 1) * WINDOW.size_ms) if forgets else 1
                assert total <= burst + LIMIT * (to_ms - from_ms) / 1000 + CONNECTIONS * largest * windows
                total += size
