"""No client gets more than its quota, however it sends: any sizes, pauses, answers that wait, on any connections.

The connection and the quota are the broker's own; the socket, the clock and the answers are the test's, so that a run
of minutes takes no time. Bytes are charged when a request begins, as Produce does it. Requests are of up to one
second's allowance: of larger ones the sampled rate itself lets more pass (docs/explanation/quotas.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import pack
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.core.quota.entity import Entity
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.net.connection import Connection
from kavka_broker.net.listener import Limits
from kavka_broker.quotas.byte_quota import ByteQuota

LIMIT = 10_000
WINDOW = SampleWindow()
CLIENT = ("alice", "etl")
CONNECTIONS = 3


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


class Broker:
    """Charges each request as it begins; the body of a request says after how long it is answered."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.quota = ByteQuota(WINDOW)
        self.quota.update({Entity(*CLIENT): LIMIT})
        self.taken: list[tuple[float, int]] = []

    def begin(self, frame: memoryview, peer: object) -> Any:
        size, waits_ms = len(frame), int.from_bytes(frame[:4], "big")
        self.taken.append((self.world.now_ms, size))
        delay_ms = self.quota.charge(*CLIENT, size, int(self.world.now_ms))
        waiting = self.world.after(waits_ms, lambda: None) if waits_ms else None
        held = self.quota.held(*CLIENT, int(self.world.now_ms)) if delay_ms else None
        client = SimpleNamespace(throttle_time_ms=delay_ms, held=held, hurry=None, is_holding=False)
        return SimpleNamespace(api=SimpleNamespace(pipelined=True), client=client, pieces=None, waiting=waiting)

    def complete(self, exchange: Any) -> None:
        exchange.waiting = None


class Socket:
    """The client's end: what it has sent waits here until the broker reads it."""

    def __init__(self, world: World, broker: Broker) -> None:
        listener = SimpleNamespace(
            dispatcher=broker, limits=Limits(), clock=world, timers=world, name="PLAINTEXT", received_bytes=0,
            opened=lambda _: None,
        )  # fmt: skip
        self.connection = Connection(listener)  # type: ignore[arg-type]
        self.connection._transport = self  # type: ignore[assignment]
        self.connection.peer = SimpleNamespace()  # type: ignore[assignment]
        self.connection.outbox = SimpleNamespace(  # type: ignore[assignment]
            waiting_bytes=0, gather=lambda: None, flush=lambda: None
        )
        self._unread = bytearray()
        self._is_paused = False

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False

    def send(self, size: int, waits_ms: int) -> None:
        self._unread += pack(">i", size) + waits_ms.to_bytes(4, "big").ljust(size, b".")
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


#: Which connection, how long after the last request, and how large.
REQUESTS = st.lists(
    st.tuples(
        st.integers(0, CONNECTIONS - 1),
        st.sampled_from([0, 0, 0, 1, 50, 200]),
        st.integers(LIMIT // 10, LIMIT),
    ),
    min_size=30,  # fewer do not fill the window
    max_size=90,
)


@settings(max_examples=60, deadline=None)
@given(REQUESTS, st.lists(st.sampled_from([0, 1, 20, 5_000]), min_size=CONNECTIONS, max_size=CONNECTIONS))
def test_no_more_than_the_quota_passes_however_it_is_sent(
    requests: list[tuple[int, int, int]], waits_ms: list[int]
) -> None:
    """`waits_ms`: for how long the answers of each connection wait for replicas."""
    world = World()
    broker = Broker(world)
    sockets = [Socket(world, broker) for _ in range(CONNECTIONS)]

    def step(to_ms: float) -> None:
        world.advance(to_ms)
        for socket in sockets:
            socket.read()

    for number, pause_ms, size in requests:
        for _ in range(5):
            step(world.now_ms + pause_ms / 5)
        sockets[number].send(size, waits_ms[number])
    total = sum(size for _, _, size in requests)
    while sum(size for _, size in broker.taken) < total:
        step(world.now_ms + 500)
        assert world.now_ms < 3_600_000, "what was sent is taken some time"

    largest = max(size for _, _, size in requests)
    burst, passed = WINDOW.value_max(LIMIT), 0
    for at_ms, size in broker.taken:
        # Each connection may have one request over the limit: it is known to be so when it is charged.
        assert passed <= burst + LIMIT * at_ms / 1000 + len(sockets) * largest
        passed += size
