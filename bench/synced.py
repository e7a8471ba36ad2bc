"""`flush.messages=1`: what a sync before each answer costs its own clients, and what it costs their neighbours.

Bare sockets, each with one request under way, driven by one selector. Plain and synced topics take turns within a
repetition, so that their ratio is of the same minute. The neighbour has a topic of its own that syncs nothing; beside
it runs a process that produces to a synced topic without a pause.
"""

import multiprocessing
import selectors
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bench import machine, topics, wire
from bench.brokers import Broker
from bench.measure import Measure
from bench.repetitions import percentile
from bench.sections import Plan, Record, alternating

SECTION: Final = "flush"
SYNCED: Final = {"flush.messages": "1"}
CONNECTIONS: Final = (1, 32, 128)
SECONDS: Final = 1.5
SMALL: Final = b"x" * 100
LARGE: Final = b"x" * 900_000
WARM_UP_SHARE: Final = 10
NEIGHBOURS: Final = (("nobody", b""), ("synced 100 B", SMALL), ("synced 900 KB", LARGE))


@dataclass(frozen=True, slots=True)
class Served:
    """What clients saw of one stretch."""

    latencies_ms: list[float]  # sorted
    seconds: float

    @property
    def figures(self) -> dict[str, float]:
        return {
            "requests_per_second": len(self.latencies_ms) / self.seconds,
            "p50_ms": percentile(self.latencies_ms, 50),
            "p99_ms": percentile(self.latencies_ms, 99),
        }


def take(brokers: Sequence[Broker], plan: Plan, record: Record) -> None:
    """Every number of connections, plain and synced; then the neighbours."""
    for repetition in range(plan.repetitions):
        for connections in CONNECTIONS:
            for broker in alternating(brokers, repetition):
                for measure in pair(broker, connections, repetition):
                    record(measure)
        for beside, value in NEIGHBOURS:
            for broker in alternating(brokers, repetition):
                record(neighbour(broker, beside, value, repetition))


def warm_up(broker: Broker, seconds: float) -> None:
    """What is measured, for so long: no other load than this section's."""
    for config in ({}, SYNCED):
        with topics.topic(broker.bootstrap, 1, config=config) as topic:
            closed_loop(broker.port, topic, 32, seconds / 2)


def pair(broker: Broker, connections: int, repetition: int) -> Iterator[Measure]:
    """So many clients on a plain topic, then on a synced one."""
    served = dict[str, Served]()
    for case, config in (("plain", {}), ("flush.messages=1", SYNCED)):
        with topics.topic(broker.bootstrap, 1, config=config) as topic, machine.Meter(broker.pid) as meter:
            served[case] = closed_loop(broker.port, topic, connections, SECONDS)
        figures = dict(served[case].figures)
        if case != "plain":
            figures["share_of_plain"] = figures["requests_per_second"] / served["plain"].figures["requests_per_second"]
        many = "1 connection" if connections == 1 else f"{connections} connections"
        yield Measure(SECTION, f"{many}, {case}", broker.name, repetition, figures, meter.cost.others_cores)


def neighbour(broker: Broker, beside: str, value: bytes, repetition: int) -> Measure:
    """One client on a plain topic, beside one that has its records synced."""
    with (
        topics.topic(broker.bootstrap, 1) as own,
        topics.topic(broker.bootstrap, 1, config=SYNCED) as other,
        producing(broker.port, other, value),
        machine.Meter(broker.pid) as meter,
    ):
        served = closed_loop(broker.port, own, 1, SECONDS)
    return Measure(SECTION, f"neighbour of {beside}", broker.name, repetition, served.figures, meter.cost.others_cores)


@contextmanager
def producing(port: int, topic: str, value: bytes) -> Iterator[None]:
    """A process beside, with one connection and one request under way; nothing where there is no value."""
    if not value:
        yield
        return
    process = multiprocessing.get_context("fork").Process(target=_produce_on, args=(port, topic, value), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _produce_on(port: int, topic: str, value: bytes) -> None:
    frame = wire.produce_frame(topic, 0, value, -1)
    with wire.Connection(port) as connection:
        while True:
            wire.produced_offset(connection.ask(frame), topic)


def closed_loop(port: int, topic: str, connections: int, seconds: float, value: bytes = SMALL) -> Served:
    """So many connections, each of which sends its next request when it has its answer."""
    frame = wire.produce_frame(topic, 0, value, -1)
    clients = [wire.Connection(port) for _ in range(connections)]
    try:
        _serve(clients, frame, topic, seconds / WARM_UP_SHARE)
        return _serve(clients, frame, topic, seconds)
    finally:
        for client in clients:
            client.close()


def _serve(clients: Sequence[wire.Connection], frame: bytes, topic: str, seconds: float) -> Served:
    sent, taken = dict[wire.Connection, float](), list[float]()
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client, selectors.EVENT_READ, client)
            sent[client] = time.perf_counter()
            client.send(frame)
        started = time.perf_counter()
        end = started + seconds
        while sent:
            for key, _ in selector.select():
                client = key.data
                wire.produced_offset(client.receive(), topic)
                now = time.perf_counter()
                taken.append((now - sent.pop(client)) * 1000)
                if now < end:
                    sent[client] = now
                    client.send(frame)
        return Served(sorted(taken), time.perf_counter() - started)
