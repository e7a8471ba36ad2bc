"""Clients under a quota of their own: which client, how many connections, which requests, and the limit.

The limits of bytes are those from 64 KiB/s, where a request is a good part of a second's worth, to 100 MiB/s, where a
window holds a gigabyte. Those of time are percentages of one loop or thread, those of mutations partitions a second.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.mutation_clients import KafkaPythonAdmin, RdkafkaAdmin
from bench.quota_clients import (
    Client,
    JavaProducer,
    KafkaPythonProducer,
    PipelinedFetcher,
    PipelinedProducer,
    RdkafkaConsumer,
    RdkafkaProducer,
    Several,
)
from bench.three_brokers import Trio

KIB: Final = 1024
MIB: Final = 1024 * 1024
PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
TIME: Final = "request_percentage"
MUTATIONS: Final = "controller_mutation_rate"

Make = Callable[[Trio, str, str], Client]


@dataclass(frozen=True, slots=True)
class Case:
    """A client, which quota it is under, how many replicas its topic has, and whether it reads what is there."""

    name: str
    make: Make
    limit: float = MIB
    key: str = PRODUCE
    replicas: int = 3
    reads: bool = False


def pipelined(in_flight: int, connections: int = 1, request_bytes: int = 64 * KIB, acks: int = -1) -> Make:
    """Produce requests by bare sockets, so many of them under way on each."""

    def make(trio: Trio, topic: str, client_id: str) -> Client:
        port = trio.leader_of_most(topic).port
        return together(
            [PipelinedProducer(port, topic, client_id, in_flight, request_bytes, acks) for _ in range(connections)]
        )

    return make


def fetching(in_flight: int, connections: int = 1) -> Make:
    """Fetch requests by bare sockets, so many of them under way on each."""

    def make(trio: Trio, topic: str, client_id: str) -> Client:
        port = trio.leader_of_most(topic).port
        return together([PipelinedFetcher(port, topic, client_id, in_flight) for _ in range(connections)])

    return make


def together(clients: list[Client]) -> Client:
    return clients[0] if len(clients) == 1 else Several(clients)


def librdkafka(size_bytes: int) -> Make:
    return lambda trio, topic, name: RdkafkaProducer(trio.bootstrap, topic, name, size_bytes)


def java(size_bytes: int) -> Make:
    return lambda trio, topic, name: JavaProducer(trio.bootstrap, topic, name, size_bytes)


def kafka_python(trio: Trio, topic: str, name: str) -> Client:
    return KafkaPythonProducer(trio.bootstrap, topic, name, KIB)


def librdkafka_consumer(trio: Trio, topic: str, name: str) -> Client:
    return RdkafkaConsumer(trio.bootstrap, topic, name)


def librdkafka_admin(partitions: int) -> Make:
    return lambda trio, topic, name: RdkafkaAdmin(trio.bootstrap, topic, name, partitions)


def kafka_python_admin(partitions: int, topics: int) -> Make:
    return lambda trio, topic, name: KafkaPythonAdmin(trio.bootstrap, topic, name, partitions, topics)


#: Over minutes, all of them at once: what a client that is always over its limit gets in the long run.
LONG: Final = (
    Case("librdkafka, records of 16 KiB", librdkafka(16 * KIB)),
    Case("librdkafka, records of 1 KiB", librdkafka(KIB)),
    Case("Java, records of 16 KiB", java(16 * KIB)),
    Case("Java, records of 1 KiB", java(KIB)),
    Case("bare socket, 64 requests of 64 KiB in flight", pipelined(64)),
    Case("4 bare sockets, 64 requests of 64 KiB in flight each", pipelined(64, 4)),
    Case("librdkafka consumer", librdkafka_consumer, key=FETCH, reads=True),
    Case("bare socket, 16 fetches in flight", fetching(16), key=FETCH, reads=True),
    Case("4 bare sockets, 16 fetches in flight each", fetching(16, 4), key=FETCH, reads=True),
)

#: Groups that run one after the other, so that what the machine can do is more than their limits together.
MATRIX: Final = {
    "64 KiB/s": (
        Case("64 KiB/s: librdkafka, records of 1 KiB", librdkafka(KIB), 64 * KIB),
        Case("64 KiB/s: kafka-python, records of 1 KiB", kafka_python, 64 * KIB),
        Case(
            "64 KiB/s: 1 socket, 4 KiB, one at a time, acks=1, one replica",
            pipelined(1, 1, 4 * KIB, 1),
            64 * KIB,
            replicas=1,
        ),
        Case("64 KiB/s: 8 sockets, 4 KiB, 16 in flight", pipelined(16, 8, 4 * KIB), 64 * KIB),
        Case("64 KiB/s: 1 socket, 100 B, 64 in flight", pipelined(64, 1, 100), 64 * KIB),
    ),
    "1 MiB/s": (
        Case("1 MiB/s: librdkafka, records of 16 KiB", librdkafka(16 * KIB)),
        Case("1 MiB/s: Java, records of 1 KiB", java(KIB)),
        Case("1 MiB/s: kafka-python, records of 1 KiB", kafka_python),
        Case("1 MiB/s: 1 socket, 64 KiB, one at a time, acks=1, one replica", pipelined(1, 1, 64 * KIB, 1), replicas=1),
        Case("1 MiB/s: 8 sockets, 64 KiB, 16 in flight", pipelined(16, 8)),
        Case("1 MiB/s: librdkafka consumer", librdkafka_consumer, key=FETCH, reads=True),
        Case("1 MiB/s: 8 sockets, 4 fetches in flight", fetching(4, 8), key=FETCH, reads=True),
    ),
    "10 MiB/s": (
        Case("10 MiB/s: librdkafka, records of 16 KiB, one replica", librdkafka(16 * KIB), 10 * MIB, replicas=1),
        Case("10 MiB/s: 8 sockets, 64 KiB, 16 in flight", pipelined(16, 8), 10 * MIB),
        Case("10 MiB/s: 8 sockets, 4 fetches in flight", fetching(4, 8), 10 * MIB, FETCH, reads=True),
    ),
    "100 MiB/s": (
        Case(
            "100 MiB/s: 8 sockets, 900 KiB, 4 in flight, acks=1, one replica",
            pipelined(4, 8, 900 * KIB, 1),
            100 * MIB,
            replicas=1,
        ),
    ),
    "100 MiB/s, fetch": (
        Case("100 MiB/s: 8 sockets, 4 fetches in flight, one replica", fetching(4, 8), 100 * MIB, FETCH, 1, reads=True),
    ),
    "request percentage": (
        Case("1 %: 1 socket, 100 B, 16 in flight, one replica", pipelined(16, 1, 100), 1, TIME, 1),
        Case("1 %: librdkafka, records of 1 KiB, one replica", librdkafka(KIB), 1, TIME, 1),
        Case("10 %: 8 sockets, 4 KiB, 16 in flight, one replica", pipelined(16, 8, 4 * KIB), 10, TIME, 1),
        Case("10 %: 8 sockets, 4 fetches in flight, one replica", fetching(4, 8), 10, TIME, 1, reads=True),
    ),
    "request percentage, 50": (
        Case("50 %: 8 sockets, 1 KiB, 16 in flight, one replica", pipelined(16, 8, KIB), 50, TIME, 1),
    ),
    "mutations": (
        Case("1 partition/s: librdkafka, 1 a request", librdkafka_admin(1), 1, MUTATIONS),
        Case("1 partition/s: kafka-python, 1 a request", kafka_python_admin(1, 1), 1, MUTATIONS),
        Case("10 partitions/s: librdkafka, 5 a request", librdkafka_admin(5), 10, MUTATIONS),
        Case("10 partitions/s: kafka-python, 4 topics of 2 a request", kafka_python_admin(2, 4), 10, MUTATIONS),
        Case("50 partitions/s: kafka-python, 5 topics of 5 a request", kafka_python_admin(5, 5), 50, MUTATIONS),
    ),
}
