"""Byte quotas over minutes: real clients on three brokers with three replicas, Kavka and Apache Kafka at once.

python -m bench.quotas                             every client on both, three minutes
python -m bench.quotas --seconds 60 --broker kavka --client librdkafka

Every client has a client id of its own under a quota of 1 MiB/s, with the default window, and sends or reads as fast as
it is let. What is told is the rate that it reached, as a part of its limit: over the whole run, in which ten seconds'
worth pass at once, and after the first 30 s. Both products run side by side, so that what else the machine does
weighs on both.
"""

import argparse
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import confluent_kafka as ck

from bench import machine, processes, report, topics, wire
from bench.__main__ import FULL, PRODUCTS, RESULTS, Run, environment, told_floors
from bench.brokers import KAVKA, compile_kavka
from bench.measure import Measure
from bench.quota_clients import (
    Client,
    JavaProducer,
    PipelinedFetcher,
    PipelinedProducer,
    RdkafkaConsumer,
    RdkafkaProducer,
    Several,
)
from bench.trio import Trio

LIMIT: Final = 1024 * 1024
FIRST_SECONDS: Final = 30.0
SAMPLE_SECONDS: Final = 0.5
REPLICAS: Final = 3
FILLED_BYTES: Final = 32 * 1024 * 1024
FILLED_RECORD_BYTES: Final = 16 * 1024
FLUSH_SECONDS_MAX: Final = 60.0
OF_OTHER_SECTIONS: Final = ("repetitions", "records", "operations", "warm_up_seconds")
HELD_LINE: Final = "kavka_client_throttle_seconds_total{"

Make = Callable[[Trio, str, str], Client]


@dataclass(frozen=True, slots=True)
class Case:
    """A client, and which of the two quotas it is under."""

    name: str
    make: Make
    key: str = "producer_byte_rate"


def pipelined(in_flight: int, connections: int = 1) -> Make:
    def make(trio: Trio, topic: str, client_id: str) -> Client:
        port = trio.leader_of_most(topic).port
        made = [PipelinedProducer(port, topic, client_id, in_flight) for _ in range(connections)]
        return made[0] if connections == 1 else Several(made)

    return make


def fetching(in_flight: int, connections: int = 1) -> Make:
    def make(trio: Trio, topic: str, client_id: str) -> Client:
        port = trio.leader_of_most(topic).port
        made = [PipelinedFetcher(port, topic, client_id, in_flight) for _ in range(connections)]
        return made[0] if connections == 1 else Several(made)

    return make


CASES: Final = (
    Case("librdkafka, records of 16 KiB", lambda t, topic, name: RdkafkaProducer(t.bootstrap, topic, name, 16 * 1024)),
    Case("librdkafka, records of 1 KiB", lambda t, topic, name: RdkafkaProducer(t.bootstrap, topic, name, 1024)),
    Case("Java, records of 16 KiB", lambda t, topic, name: JavaProducer(t.bootstrap, topic, name, 16 * 1024)),
    Case("Java, records of 1 KiB", lambda t, topic, name: JavaProducer(t.bootstrap, topic, name, 1024)),
    Case("bare socket, 64 requests of 64 KiB in flight", pipelined(64)),
    Case("4 bare sockets, 64 requests of 64 KiB in flight each", pipelined(64, 4)),
    Case("librdkafka consumer", lambda t, topic, name: RdkafkaConsumer(t.bootstrap, topic, name), "consumer_byte_rate"),
    Case("bare socket, 16 fetches in flight", fetching(16), "consumer_byte_rate"),
    Case("4 bare sockets, 16 fetches in flight each", fetching(16, 4), "consumer_byte_rate"),
)


@dataclass(slots=True)
class Watched:
    """One client on one product, and what it had taken at which time."""

    trio: Trio
    case: Case
    client_id: str
    client: Client
    samples: list[tuple[float, int]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def sample(self) -> None:
        if self.client.failure:
            raise processes.ClientError(f"{self.trio.name}: {self.case.name}: {self.client.failure}")
        if self.client.bytes_taken or self.samples:
            self.samples.append((time.monotonic(), self.client.bytes_taken))

    def of_limit(self, from_seconds: float) -> float:
        """Its rate since then, counted from its first byte, as a part of the limit."""
        if not self.samples:
            raise processes.ClientError(f"{self.trio.name}: {self.case.name}: nothing was taken")
        began = self.samples[0][0]
        later = [sample for sample in self.samples if sample[0] - began >= from_seconds]
        start, end = later[0] if from_seconds else (began, 0), later[-1]
        return (end[1] - start[1]) / (end[0] - start[0]) / LIMIT


def set_quota(trio: Trio, client_id: str, key: str) -> None:
    with wire.Connection(trio.members[0].port) as connection:
        error = wire.client_quota_error(connection.ask(wire.client_quota_frame(client_id, key, LIMIT)))
    if error:
        raise processes.ClientError(f"{trio.name}: the quota was refused with error {error}")


def fill(trio: Trio, topic: str) -> None:
    """Something to read, written without a quota."""
    producer = ck.Producer({"bootstrap.servers": trio.bootstrap, "acks": "all", "log_level": 0})
    for _ in range(FILLED_BYTES // FILLED_RECORD_BYTES):
        producer.produce(topic, bytes(FILLED_RECORD_BYTES), partition=0)
    if producer.flush(FLUSH_SECONDS_MAX):
        raise processes.ClientError(f"{trio.name}: {topic} could not be filled")


def prepared(trio: Trio, case: Case, number: int) -> tuple[str, str]:
    """A topic of its own for a client, and its client id with a quota."""
    topic, client_id = f"quota-{number}", f"client-{number}"
    topics.create(trio.admin(), topic, 1, REPLICAS)
    trio.wait_whole(topic, 1)
    set_quota(trio, client_id, case.key)
    if case.key == "consumer_byte_rate":
        fill(trio, topic)
    return topic, client_id


def held_seconds(trio: Trio, client_id: str) -> float:
    """The time that a client was held, as the three brokers count it."""
    total = 0.0
    for member in trio.members:
        with urllib.request.urlopen(f"http://127.0.0.1:{member.admin_port}/metrics") as page:
            lines = page.read().decode().splitlines()
        mine = [line for line in lines if line.startswith(HELD_LINE) and f'client_id="{client_id}"' in line]
        total += sum(float(line.rsplit(" ", 1)[1]) for line in mine)
    return total


@contextmanager
def running(trio: Trio, nice: int) -> Iterator[Trio]:
    trio.nice = nice
    trio.start()
    try:
        yield trio
    finally:
        trio.stop()


def watch(trios: Sequence[Trio], cases: Sequence[Case], seconds: float) -> list[Watched]:
    """Start every client on every product at once, and look on."""
    places = [(trio, case, *prepared(trio, case, number)) for trio in trios for number, case in enumerate(cases)]
    time.sleep(2.0)  # every broker is to have heard of the quotas
    watched = [Watched(trio, case, name, case.make(trio, topic, name)) for trio, case, topic, name in places]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(SAMPLE_SECONDS)
        for one in watched:
            one.sample()
    return watched


def figures(one: Watched, seconds: float) -> dict[str, float]:
    found = {"of_limit": one.of_limit(0), "bytes": one.samples[-1][1]}
    if seconds > 2 * FIRST_SECONDS:
        found["of_limit_later"] = one.of_limit(FIRST_SECONDS)
    if not isinstance(one.client, JavaProducer):
        found["told_seconds"] = one.client.told_ms / 1000
    if one.trio.product is KAVKA:
        found["held_share"] = held_seconds(one.trio, one.client_id) / (time.monotonic() - one.began)
    return found


def take(trios: Sequence[Trio], cases: Sequence[Case], seconds: float, record: Callable[[Measure], None]) -> None:
    pids = [pid for trio in trios for pid in trio.pids]
    with machine.Meter(*pids) as meter:
        watched = watch(trios, cases, seconds)
        measured = [(one, figures(one, seconds)) for one in watched]
    for one, found in measured:
        record(Measure("quotas", one.case.name, one.trio.name, 0, found, meter.cost.others_cores))
    for one in watched:
        one.client.stop()


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quotas", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--broker", action="append", choices=tuple(PRODUCTS), help="only this one")
    parser.add_argument("--client", help="only cases whose name has this in it")
    parser.add_argument("--nice", type=int, default=0, help="of brokers and clients against other programs (root)")
    parser.add_argument("--output", type=Path, help="the result's path without ending; bench/results/DATE by default")
    return parser.parse_args()


def main() -> None:
    chosen, started = options(), time.time()
    cases = [case for case in CASES if (chosen.client or "") in case.name]
    processes.end_all_at_exit()
    compile_kavka()
    root = Path(tempfile.mkdtemp(prefix="kavka-bench-"))
    run, found = Run(chosen.nice), told_floors(root)
    try:
        with ExitStack() as stack:
            products = [PRODUCTS[name] for name in chosen.broker or PRODUCTS]
            trios = [
                stack.enter_context(running(Trio(product, root / product.name), chosen.nice)) for product in products
            ]
            take(trios, cases, chosen.seconds, run.record)
    finally:
        processes.stop_all()
        shutil.rmtree(root, ignore_errors=True)
    whole = environment(FULL, started, found)
    about = {name: value for name, value in whole.items() if name not in OF_OTHER_SECTIONS}
    about |= {"seconds": chosen.seconds, "limit_bytes_per_second": LIMIT}
    print("\n" + report.text(run.measures))
    output = chosen.output or RESULTS / time.strftime("%Y-%m-%d-%H%M-quotas", time.gmtime(started))
    report.write(output, run.measures, about)
    print(f"written to {output}.json and {output}.md")


if __name__ == "__main__":
    main()
