"""Transactions: how many a second, and how long a commit takes, by producers of both generations.

Those of version 1 are confluent-kafka's: what an application sees. Those of version 2 are bare sockets that send what
Java's producer of Apache Kafka 4 sends: a Produce that brings the partitions in, then EndTxn. A transaction that comes
while the former one is still being completed is asked for again after a moment, as clients do. `until it is read` is
the time from the beginning of a transaction of one record until a read_committed consumer that was waiting has it.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import confluent_kafka as ck

from bench import latency, machine, topics, transaction_wire, wire
from bench.brokers import Broker
from bench.measure import Measure
from bench.repetitions import percentile
from bench.sections import Plan, Record, alternating

SECTION: Final = "transactions"
VALUE: Final = b"x" * 100
SHAPES: Final = ((1, 1), (10, 1), (10, 10), (1000, 1), (1000, 10))  # records of a transaction, partitions
PRODUCERS: Final = (1, 8)
SECONDS: Final = 2.0
WARM_UP_SHARE: Final = 10
AGAIN_SECONDS: Final = 0.001
CALL_SECONDS_MAX: Final = 60.0
READS: Final = 200


@dataclass(frozen=True, slots=True)
class Shape:
    """What each of several producers does over and over."""

    records: int
    partitions: int
    producers: int
    client: str

    @property
    def case(self) -> str:
        return ", ".join((
            plural(self.records, "record"), plural(self.partitions, "partition"), plural(self.producers, "producer"),
            self.client,
        ))  # fmt: skip


#: One transaction: the milliseconds that its commit took.
Transact = Callable[[], float]


class Reachable(Protocol):
    """One broker, or several as one."""

    @property
    def bootstrap(self) -> str: ...


#: A producer of this topic, with a transactional id of its own.
Connect = Callable[[Broker, str, str, Shape], Transact]


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def take(brokers: Sequence[Broker], plan: Plan, record: Record) -> None:
    """Every shape by both generations, then what a reader waits."""
    for repetition in range(plan.repetitions):
        for shape in shapes():
            for broker in alternating(brokers, repetition):
                record(measured(broker, shape, SECONDS, repetition))
        for broker in alternating(brokers, repetition):
            record(read(broker, READS, repetition))


def warm_up(broker: Broker, seconds: float) -> None:
    """Some of everything, for about so long."""
    known = list(shapes())
    for shape in known:
        measured(broker, shape, seconds / len(known), 0)
    read(broker, READS // 4, 0)


def shapes() -> Iterator[Shape]:
    for records, partitions in SHAPES:
        for producers in PRODUCERS:
            for client in CLIENTS:
                yield Shape(records, partitions, producers, client)


def measured(broker: Broker, shape: Shape, seconds: float, repetition: int) -> Measure:
    """So many producers, each of which begins its next transaction when the last is committed."""
    with topics.topic(broker.bootstrap, shape.partitions) as topic:
        connect = CLIENTS[shape.client]
        producers = [connect(broker, topic, f"{topic}-{number}", shape) for number in range(shape.producers)]
        together(producers, seconds / WARM_UP_SHARE)
        with machine.Meter(broker.pid) as meter:
            started = time.perf_counter()
            commits_ms = together(producers, seconds)
            taken = time.perf_counter() - started
    figures = {
        "transactions_per_second": len(commits_ms) / taken,
        "commit_p50_ms": percentile(commits_ms, 50),
        "commit_p99_ms": percentile(commits_ms, 99),
        "cpu_microseconds_per_operation": meter.cost.broker.total / len(commits_ms) * 1e6,
    }
    return Measure(SECTION, shape.case, broker.name, repetition, figures, meter.cost.others_cores)


def together(producers: Sequence[Transact], seconds: float) -> list[float]:
    """The commits of all producers, each in a thread, in order of their milliseconds. Raises what one has raised."""
    found: list[list[float]] = [[] for _ in producers]
    errors: list[BaseException] = []
    end = time.perf_counter() + seconds

    def run(transact: Transact, commits_ms: list[float]) -> None:
        try:
            while not commits_ms or time.perf_counter() < end:
                commits_ms.append(transact())
        except BaseException as error:  # noqa: BLE001 - raised again where the bench hears it
            errors.append(error)

    threads = [threading.Thread(target=run, args=each) for each in zip(producers, found, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sorted(commit_ms for commits_ms in found for commit_ms in commits_ms)


# --- clients ----------------------------------------------------------------------------------------------------------


def confluent(broker: Reachable, topic: str, transactional_id: str, shape: Shape) -> Transact:
    """A producer of version 1."""
    settings: dict[str, object] = {
        "bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id, "linger.ms": 0,
    }  # fmt: skip
    producer = ck.Producer(latency.QUIET | settings)
    producer.init_transactions(CALL_SECONDS_MAX)

    def transact() -> float:
        producer.begin_transaction()
        for number in range(shape.records):
            producer.produce(topic, VALUE, partition=number % shape.partitions)
        if producer.flush(CALL_SECONDS_MAX):
            raise wire.WireError("confluent-kafka: records of a transaction were not acknowledged")
        started = time.perf_counter()
        producer.commit_transaction(CALL_SECONDS_MAX)
        return (time.perf_counter() - started) * 1000

    return transact


def bare(broker: Broker, topic: str, transactional_id: str, shape: Shape) -> Transact:
    """A producer of version 2, over one socket."""
    confluent(broker, topic, transactional_id, shape)  # it finds the coordinator, which has to be there
    connection = wire.Connection(broker.port)
    identity = asked(connection, transaction_wire.init_producer_frame(transactional_id))
    sequences = [0] * shape.partitions

    def transact() -> float:
        nonlocal identity, sequences
        share = shape.records // shape.partitions
        batches = [transaction_wire.batch(identity, sequence, share, VALUE) for sequence in sequences]
        frame = transaction_wire.produce_frame(transactional_id, topic, batches)
        while error := transaction_wire.produce_error(connection.ask(frame)):
            if error not in transaction_wire.RETRIABLE:
                raise wire.WireError(f"Produce was answered with error {error}")
            time.sleep(AGAIN_SECONDS)
        started = time.perf_counter()
        following = asked(connection, transaction_wire.end_frame(transactional_id, identity))
        taken_ms = (time.perf_counter() - started) * 1000
        sequences = [0 if following != identity else sequence + share for sequence in sequences]
        identity = following
        return taken_ms

    return transact


def asked(connection: wire.Connection, frame: bytes) -> transaction_wire.Identity:
    """What InitProducerId or EndTxn is answered with. Raises WireError."""
    while True:
        error, identity = transaction_wire.identity_in(connection.ask(frame))
        if not error:
            return identity
        if error not in transaction_wire.RETRIABLE:
            raise wire.WireError(f"a coordinator answered with error {error}")
        time.sleep(AGAIN_SECONDS)


CLIENTS: Final[dict[str, Connect]] = {"version 1 (confluent-kafka)": confluent, "version 2 (bare sockets)": bare}


# --- readers ----------------------------------------------------------------------------------------------------------


def read(broker: Broker, count: int, repetition: int) -> Measure:
    """From the beginning of a transaction of one record until a read_committed consumer has it."""
    shape = Shape(1, 1, 1, "confluent-kafka, until it is read")
    with topics.topic(broker.bootstrap, 1) as topic, machine.Meter(broker.pid) as meter:
        samples = end_to_end(broker, topic, shape, count)
    figures = {
        "commit_p50_ms": percentile(samples, 50),
        "commit_p99_ms": percentile(samples, 99),
        "cpu_microseconds_per_operation": meter.cost.broker.total / count * 1e6,
    }
    return Measure(SECTION, shape.case, broker.name, repetition, figures, meter.cost.others_cores)


def end_to_end(broker: Reachable, topic: str, shape: Shape, count: int) -> list[float]:
    """The milliseconds from the beginning of each transaction until it is read, in order; without the first ones."""
    transact = confluent(broker, topic, f"{topic}-read", shape)
    consumer = ck.Consumer(latency.QUIET | {
        "bootstrap.servers": broker.bootstrap, "group.id": "bench", "enable.auto.commit": False,
        "isolation.level": "read_committed",
    })  # fmt: skip
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    samples: list[float] = []
    for _ in range(count):
        started = time.perf_counter()
        transact()
        message = consumer.poll(CALL_SECONDS_MAX)
        if message is None or message.error():
            raise wire.WireError("confluent-kafka: the record did not come")
        samples.append((time.perf_counter() - started) * 1000)
    consumer.close()
    return sorted(samples[count // WARM_UP_SHARE :])
