"""What is measured, and in which order.

Repetitions are the outermost loop and the brokers the innermost, and every second repetition begins with the other
broker: whatever drifts on the machine drifts under both.
"""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from confluent_kafka.admin import AdminClient

from bench import latency, load, machine, topics
from bench.brokers import Broker, Product
from bench.load import Load, Outcome
from bench.measure import Measure
from bench.repetitions import percentile

SETTLE_SECONDS = 15.0
IDLE_SECONDS = 20.0

T = TypeVar("T")
Record = Callable[[Measure], None]
Probe = Callable[[Broker, str, int], list[float]]


class Named(Protocol):
    """What is measured: one broker, or several as one."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything, and of what. `records` is for 100 B and the fast client; the rest follows from it."""

    repetitions: int
    records: int
    operations: int
    warm_up_seconds: float
    clients: tuple[str, ...]
    sizes_bytes: tuple[int, ...]
    partitions: tuple[int, ...]
    acks: tuple[str, ...]
    crash: bool

    def amount(self, client: str, size_bytes: int) -> int:
        """How many records: the Java tools are slower, and large records are fewer."""
        records = self.records if client == load.RDKAFKA else self.records // 2
        return records if size_bytes <= 100 else records // 5


def alternating(brokers: Sequence[T], repetition: int) -> list[T]:
    """The brokers, in the order of this repetition."""
    return list(brokers) if repetition % 2 == 0 else list(reversed(brokers))


def warm_up(broker: Broker, plan: Plan, seconds: float) -> None:
    """Every kind of load that will be measured, at least once, and until the time is over (the JIT needs a minute)."""
    deadline = time.monotonic() + seconds
    while True:
        with topics.topic(broker.bootstrap, 1) as topic:
            for client in load.known(load.PRODUCERS, plan.clients):
                load.produce(broker.bootstrap, topic, Load(client, 100, 1, plan.amount(client, 100) // 3, "all"))
            for client in load.known(load.CONSUMERS, plan.clients):
                load.consume(broker.bootstrap, topic, Load(client, 100, 1, plan.amount(client, 100) // 3))
            latency.produce_bare(broker.port, topic, plan.operations // 5)
        if time.monotonic() >= deadline:
            return


def produce(brokers: Sequence[Broker], plan: Plan, record: Record) -> None:
    """Sustained produce: every client, size, number of partitions and acks."""
    for repetition in range(plan.repetitions):
        for what in produce_loads(plan):
            for broker in alternating(brokers, repetition):
                with topics.topic(broker.bootstrap, what.partitions) as topic, machine.Meter(broker.pid) as meter:
                    outcome = load.produce(broker.bootstrap, topic, what)
                record(loaded("produce", broker, repetition, what, outcome, meter.cost))


def produce_loads(plan: Plan) -> list[Load]:
    return [
        Load(client, size_bytes, partitions, plan.amount(client, size_bytes), acks)
        for size_bytes in plan.sizes_bytes
        for partitions in plan.partitions
        for acks in plan.acks
        for client in load.known(load.PRODUCERS, plan.clients)
    ]


def consume(brokers: Sequence[Broker], plan: Plan, record: Record) -> None:
    """Sustained consume, from the page cache."""
    shapes = [(size_bytes, partitions) for size_bytes in plan.sizes_bytes for partitions in plan.partitions]
    for size_bytes, partitions in shapes:
        with ExitStack() as stack:
            filled = {
                broker.name: stack.enter_context(filled_topic(broker, plan, size_bytes, partitions))
                for broker in brokers
            }
            for repetition in range(plan.repetitions):
                for client in load.known(load.CONSUMERS, plan.clients):
                    what = Load(client, size_bytes, partitions, plan.amount(load.RDKAFKA, size_bytes))
                    for broker in alternating(brokers, repetition):
                        with machine.Meter(broker.pid) as meter:
                            outcome = load.consume(broker.bootstrap, filled[broker.name], what)
                        record(loaded("consume", broker, repetition, what, outcome, meter.cost))


@contextmanager
def filled_topic(broker: Broker, plan: Plan, size_bytes: int, partitions: int) -> Iterator[str]:
    """A topic with enough to read."""
    records = plan.amount(load.RDKAFKA, size_bytes)
    with topics.topic(broker.bootstrap, partitions) as topic:
        load.produce(broker.bootstrap, topic, Load(load.RDKAFKA, size_bytes, partitions, records, "all"))
        yield topic


def loaded(section: str, broker: Named, repetition: int, what: Load, outcome: Outcome, cost: machine.Cost) -> Measure:
    """The measure of a run of a load generator."""
    gigabytes = outcome.records_in_all * what.size_bytes / 1e9
    figures = {
        "records_per_second": outcome.records_per_second,
        "megabytes_per_second": outcome.records_per_second * what.size_bytes / 1e6,
        "cpu_seconds_per_gb": cost.broker.total / gigabytes,
        "cpu_user_seconds_per_gb": cost.broker.user / gigabytes,
    }
    latencies = {"p50_ms": outcome.p50_ms, "p99_ms": outcome.p99_ms, "p999_ms": outcome.p999_ms}
    figures |= {name: value for name, value in latencies.items() if value is not None}
    return Measure(section, describe(what), broker.name, repetition, figures, cost.others_cores)


def describe(what: Load) -> str:
    """A load as a row is headed."""
    partitions = "1 partition" if what.partitions == 1 else f"{what.partitions} partitions"
    acks = "" if what.acks == "-" else f", acks={what.acks}"
    return f"{what.size_bytes} B, {partitions}{acks}, {what.client}"


def one_at_a_time(brokers: Sequence[Broker], plan: Plan, record: Record) -> None:
    """Latency with nothing else in flight."""
    probes: tuple[tuple[str, Probe], ...] = (
        ("produce acks=all 100 B, bare socket", lambda b, t, n: latency.produce_bare(b.port, t, n)),
        ("produce acks=all 100 B, confluent-kafka", lambda b, t, n: latency.produce_confluent(b.bootstrap, t, n)),
        ("end to end 100 B, bare sockets", lambda b, t, n: latency.end_to_end_bare(b.port, t, n // 2)),
        ("end to end 100 B, confluent-kafka", lambda b, t, n: latency.end_to_end_confluent(b.bootstrap, t, n // 2)),
    )
    for repetition in range(plan.repetitions):
        for case, probe in probes:
            for broker in alternating(brokers, repetition):
                with topics.topic(broker.bootstrap, 1) as topic:
                    probe(broker, topic, max(20, plan.operations // 20))
                    with machine.Meter(broker.pid) as meter:
                        samples = probe(broker, topic, plan.operations)
                record(timed(case, broker, repetition, samples, meter.cost))


def timed(case: str, broker: Named, repetition: int, samples: Sequence[float], cost: machine.Cost) -> Measure:
    """The measure of a series of single operations."""
    operations = len(samples) * latency.WARM_UP_SHARE / (latency.WARM_UP_SHARE - 1)
    figures = {
        "p50_ms": percentile(samples, 50),
        "p99_ms": percentile(samples, 99),
        "p999_ms": percentile(samples, 99.9),
        "cpu_microseconds_per_operation": cost.broker.total / operations * 1e6,
    }
    return Measure("latency", case, broker.name, repetition, figures, cost.others_cores)


def process(products: Sequence[Product], directory: Path, plan: Plan, record: Record) -> None:
    """Start, restart, stop, and the memory of a broker that is idle."""
    for repetition in range(plan.repetitions):
        brokers = [Broker(product, directory / f"{product.name}-{repetition}") for product in products]
        for broker in alternating(brokers, repetition):
            for case, seconds in lifetime(broker, plan.crash):
                record(Measure("process", case, broker.name, repetition, {"cost": seconds}))
        time.sleep(SETTLE_SECONDS)
        for broker, cost in idle(brokers):
            share = cost.broker.total / cost.wall_seconds * 100
            memory = machine.rss_bytes(broker.pid) / 2**20
            record(Measure("process", "idle CPU, % of a core", broker.name, repetition, {"cost": share}))
            record(Measure("process", "idle RSS, MiB", broker.name, repetition, {"cost": memory}))
        for broker in brokers:
            record(Measure("process", "stop, s", broker.name, repetition, {"cost": broker.stop()}))


def lifetime(broker: Broker, crash: bool) -> Iterator[tuple[str, float]]:
    """Start, restart and, if asked, restart after a crash; the broker runs at the end."""
    broker.format()
    yield "start to first answer, s", broker.start()
    # The first metadata has to be settled before a stop tells anything about a restart.
    AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 3}).list_topics(timeout=topics.ADMIN_SECONDS_MAX)
    broker.stop()
    yield "restart to first answer, s", broker.start()
    if crash:
        broker.stop(signal.SIGKILL)
        yield "restart after kill -9 to first answer, s", broker.start()


def idle(brokers: Sequence[Broker]) -> list[tuple[Broker, machine.Cost]]:
    """All of them over the same idle stretch."""
    with ExitStack() as stack:
        meters = [stack.enter_context(machine.Meter(broker.pid)) for broker in brokers]
        time.sleep(IDLE_SECONDS)
    return [(broker, meter.cost) for broker, meter in zip(brokers, meters, strict=True)]
