"""Three Kavka brokers beside three of Apache Kafka: replication, failures, many partitions.

    python -m bench.cluster                         all sections, once each for both
    python -m bench.cluster --section failover --repetitions 3

One product runs at a time, each repetition on a fresh cluster, and every second repetition begins with the other.
The sections: `replicated` (produce with three replicas and acks=all), `flush` (that with `flush.messages=1`, from 32
connections at once), `failover` (kill -9 of a leader, and a controlled stop, under load), `partitions` (a thousand
partitions: created, idle, a broker restarted), `transactions` (with three replicas; ten thousand idle ids that expire).
"""

import argparse
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import confluent_kafka as ck

from bench import cluster_transactions, latency, load, machine, memory, processes, report, sections, synced, topics
from bench.__main__ import FULL, NEEDS_WARM_UP, PRODUCTS, RESULTS, Run, environment, told_floors
from bench.brokers import compile_kavka
from bench.load import Load
from bench.measure import Measure
from bench.three_brokers import NODE_IDS, Trio

REPLICAS: Final = len(NODE_IDS)
PARTITIONS_MANY: Final = 1_000
IDLE_SECONDS: Final = 20.0
SETTLE_SECONDS: Final = 10.0
UNDER_LOAD_SECONDS: Final = 5.0
AFTER_FAULT_SECONDS: Final = 20.0
VALUES_A_SECOND: Final = 200
FAILOVER_PARTITIONS: Final = 6
FLUSH_SECONDS_MAX: Final = 120.0
IN_FLIGHT: Final = 5
SYNCED_CONNECTIONS: Final = 32
SYNCED_VALUE: Final = b"x" * 1_000


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of everything."""

    records: int
    operations: int
    warm_up_seconds: float


class Ticker:
    """A producer that sends to each partition at a steady pace, and remembers the longest silence of any of them."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: Sequence[int], *, values_a_second: int = VALUES_A_SECOND
    ) -> None:
        self._pause_seconds = 1 / values_a_second
        self._producer = ck.Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", "linger.ms": 0,
            "log_level": 0, "reconnect.backoff.max.ms": 500, "retry.backoff.ms": 20, "retry.backoff.max.ms": 200,
        })  # fmt: skip
        self._topic = topic
        self._last = dict.fromkeys(partitions, time.monotonic())
        self.longest = dict.fromkeys(partitions, 0.0)
        self.failed = 0
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stops.is_set():
            for partition in self._last:
                self._producer.produce(self._topic, b"x" * 100, partition=partition, on_delivery=self._delivered)
            self._producer.poll(self._pause_seconds)
        self._producer.flush(FLUSH_SECONDS_MAX)

    def _delivered(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        partition = message.partition()
        if error is not None or partition is None:
            self.failed += 1
            return
        now = time.monotonic()
        self.longest[partition] = max(self.longest[partition], now - self._last[partition])
        self._last[partition] = now

    def reset(self) -> None:
        self.longest = dict.fromkeys(self.longest, 0.0)

    def stop(self) -> None:
        self._stops.set()
        self._thread.join()
        if self.failed:
            raise processes.ClientError(f"{self.failed} records were not acknowledged")


Record = Callable[[Measure], None]


@contextmanager
def running(trio: Trio, seconds: float, nice: int) -> Iterator[Trio]:
    """The three, started and warm."""
    trio.nice = nice
    trio.start()
    try:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with topics.topic(trio.bootstrap, 1, REPLICAS) as topic:
                load.produce(trio.bootstrap, topic, Load(load.RDKAFKA, 100, 1, 200_000, "all"))
        yield trio
    finally:
        trio.stop()


def replicated(trio: Trio, amount: Amount, repetition: int, record: Record) -> None:
    """Produce with three replicas and acks=all: throughput, one at a time, and five under way on one connection."""
    for size_bytes in (100, 1000):
        for partitions in (1, 6):
            for client in (load.RDKAFKA, load.JAVA_LARGE):
                records = amount.records // (1 if size_bytes == 100 else 5) // (1 if client == load.RDKAFKA else 2)
                what = Load(client, size_bytes, partitions, records, "all")
                with topics.topic(trio.bootstrap, partitions, REPLICAS) as topic, machine.Meter(*trio.pids) as meter:
                    outcome = load.produce(trio.bootstrap, topic, what)
                record(sections.loaded("replicated", trio, repetition, what, outcome, meter.cost))
    with topics.topic(trio.bootstrap, 1, REPLICAS) as topic:
        trio.wait_whole(topic, 1)
        time.sleep(1.0)  # a node may know of a topic before it serves it
        port = trio.leader_of_most(topic).port
        latency.produce_bare(port, topic, amount.operations // 10)
        with machine.Meter(*trio.pids) as meter:
            samples = latency.produce_bare(port, topic, amount.operations)
        case = "produce acks=all 100 B, 3 replicas, bare socket"
        record(sections.timed(case, trio, repetition, samples, meter.cost))
        for in_flight in (1, IN_FLIGHT):
            with machine.Meter(*trio.pids) as meter:
                rate = latency.produce_pipelined(port, topic, amount.operations, in_flight)
            figures = {"records_per_second": rate}
            case = f"one connection, {in_flight} requests of one record in flight"
            record(Measure("replicated", case, trio.name, repetition, figures, meter.cost.others_cores))


def flush(trio: Trio, _: Amount, repetition: int, record: Record) -> None:
    """What a sync before each answer costs where all three replicas make it: a plain topic, then a synced one."""
    plain = 0.0
    for case, config in (("plain", {}), ("flush.messages=1", synced.SYNCED)):
        with topics.topic(trio.bootstrap, 1, REPLICAS, config) as topic:
            trio.wait_whole(topic, 1)
            time.sleep(1.0)  # a node may know of a topic before it serves it
            port = trio.leader_of_most(topic).port
            with machine.Meter(*trio.pids) as meter:
                served = synced.closed_loop(port, topic, SYNCED_CONNECTIONS, synced.SECONDS, SYNCED_VALUE)
        figures = served.figures
        if plain:
            figures["share_of_plain"] = figures["requests_per_second"] / plain
        plain = figures["requests_per_second"]
        name = f"{SYNCED_CONNECTIONS} connections, 1 KB, 3 replicas, {case}"
        record(Measure("flush", name, trio.name, repetition, figures, meter.cost.others_cores))


def failover(trio: Trio, _: Amount, repetition: int, record: Record) -> None:
    """How long acknowledgements stay away when a leader dies or is stopped, and how soon it is back."""
    for how, case in ((signal.SIGKILL, "kill -9 of a leader"), (signal.SIGTERM, "controlled stop of a leader")):
        with topics.topic(trio.bootstrap, FAILOVER_PARTITIONS, REPLICAS) as topic:
            ticker = Ticker(trio.bootstrap, topic, range(FAILOVER_PARTITIONS))
            time.sleep(UNDER_LOAD_SECONDS)
            victim = trio.leader_of_most(topic)
            ticker.reset()
            with machine.Meter(*(member.pid for member in trio.members if member is not victim)) as meter:
                took = victim.stop(how)
                time.sleep(AFTER_FAULT_SECONDS)
            gap = max(ticker.longest.values())
            ticker.reset()
            began = time.monotonic()
            trio.launch(victim)
            trio.wait_whole(topic, FAILOVER_PARTITIONS)
            back = time.monotonic() - began
            time.sleep(1.0)
            back_gap = max(ticker.longest.values())
            ticker.stop()
        others = meter.cost.others_cores
        costs = {
            f"{case}: longest gap between acks, s": gap,
            f"{case}: restart to in sync everywhere, s": back,
            f"{case}: longest gap while it comes back, s": back_gap,
        }
        if how is signal.SIGTERM:
            costs[f"{case}: until it is gone, s"] = took
        for name, cost in costs.items():
            record(Measure("cluster", name, trio.name, repetition, {"cost": cost}, others))


def partitions(trio: Trio, _: Amount, repetition: int, record: Record) -> None:
    """A thousand partitions of three replicas."""
    case = f"{PARTITIONS_MANY:,} partitions"
    with topics.topic(trio.bootstrap, PARTITIONS_MANY, REPLICAS) as topic:
        trio.wait_whole(topic, PARTITIONS_MANY)
        time.sleep(SETTLE_SECONDS)
        with machine.Meter(*trio.pids) as idle:
            time.sleep(IDLE_SECONDS)
        resident = sum(machine.rss_bytes(pid) for pid in trio.pids) / 2**20
        victim = trio.members[-1]
        stopped = victim.stop(signal.SIGTERM)
        began = time.monotonic()
        trio.launch(victim)
        victim.wait_until_it_answers()
        answered = time.monotonic() - began
        trio.wait_whole(topic, PARTITIONS_MANY)
        whole = time.monotonic() - began
    share = idle.cost.broker.total / idle.cost.wall_seconds * 100
    for name, cost in {
        f"idle CPU of three with {case}, % of a core": share,
        f"RSS of three with {case}, MiB": resident,
        f"controlled stop with {case}, s": stopped,
        f"restart with {case} to first answer, s": answered,
        f"restart with {case} to in sync everywhere, s": whole,
    }.items():
        record(Measure("cluster", name, trio.name, repetition, {"cost": cost}, idle.cost.others_cores))


def creation(trio: Trio, _: Amount, repetition: int, record: Record) -> None:
    """Time until a thousand partitions are known to all, and until each has acknowledged a record.

    The first alone would say little: a broker may know of a partition before it has a log for it.
    """
    admin = trio.admin()
    name = "bench-creation"
    with machine.Meter(*trio.pids) as meter:
        began = time.monotonic()
        topics.create(admin, name, PARTITIONS_MANY, REPLICAS)
        trio.wait_whole(name, PARTITIONS_MANY)
        known = time.monotonic() - began
        write_to_each(trio.bootstrap, name, PARTITIONS_MANY)
        served = time.monotonic() - began
    admin.delete_topics([name], operation_timeout=FLUSH_SECONDS_MAX)[name].result(FLUSH_SECONDS_MAX)
    for what, cost in {
        f"create {PARTITIONS_MANY:,} partitions until all nodes know them, s": known,
        f"create {PARTITIONS_MANY:,} partitions until each has acknowledged a record, s": served,
        f"create {PARTITIONS_MANY:,} partitions and write to each, CPU of three, s": meter.cost.broker.total,
    }.items():
        record(Measure("cluster", what, trio.name, repetition, {"cost": cost}, meter.cost.others_cores))


def write_to_each(bootstrap: str, topic: str, partitions: int) -> None:
    """One record to every partition, acknowledged by all replicas."""
    producer = ck.Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5, "log_level": 0})
    for partition in range(partitions):
        producer.produce(topic, b"x", partition=partition)
    left = producer.flush(FLUSH_SECONDS_MAX)
    if left:
        raise processes.ClientError(f"{left} of {partitions} partitions acknowledge nothing")


SECTIONS: Final = {
    "replicated": (replicated,),
    "flush": (flush,),
    "failover": (failover,),
    "partitions": (creation, partitions),
    "transactions": (cluster_transactions.replicated, cluster_transactions.idle_ids),
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--section", action="append", choices=tuple(SECTIONS), help="only this; may be repeated")
    parser.add_argument("--broker", action="append", choices=tuple(PRODUCTS), help="only this one")
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--records", type=int, default=1_000_000, help="of 100 B with librdkafka")
    parser.add_argument("--operations", type=int, default=5_000)
    parser.add_argument("--warm-up-seconds", type=float, default=40.0)
    parser.add_argument("--nice", type=int, default=0, help="of brokers and clients against other programs (root)")
    parser.add_argument("--output", type=Path, help="the result's path without ending; bench/results/DATE by default")
    return parser.parse_args()


def main() -> None:
    chosen, started = options(), time.time()
    amount = Amount(chosen.records, chosen.operations, chosen.warm_up_seconds)
    products = [PRODUCTS[name] for name in chosen.broker or PRODUCTS]
    processes.end_all_at_exit()
    compile_kavka()
    root = Path(tempfile.mkdtemp(prefix="kavka-bench-"))
    run, found = Run(0), told_floors(root)
    try:
        with memory.Pool(memory.pool_bytes()):
            for repetition in range(chosen.repetitions):
                for product in sections.alternating(products, repetition):
                    trio = Trio(product, root / f"{product.name}-{repetition}")
                    warm_up = amount.warm_up_seconds if NEEDS_WARM_UP[product.name] else 0.0
                    with running(trio, warm_up, chosen.nice):
                        for name in chosen.section or SECTIONS:
                            for take in SECTIONS[name]:
                                take(trio, amount, repetition, run.record)
    finally:
        processes.stop_all()
        shutil.rmtree(root, ignore_errors=True)
    about = environment(FULL, started, found) | {
        "repetitions": chosen.repetitions, "records": amount.records, "operations": amount.operations,
        "warm_up_seconds": amount.warm_up_seconds,
    }  # fmt: skip
    print("\n" + report.text(run.measures))
    output = chosen.output or RESULTS / time.strftime("%Y-%m-%d-%H%M-cluster", time.gmtime(started))
    report.write(output, run.measures, about)
    print(f"written to {output}.json and {output}.md")


if __name__ == "__main__":
    main()
