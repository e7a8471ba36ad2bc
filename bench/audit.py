"""What answers from an audit trail cost by its length: both engines, over one trail that a real client has written.

    .venv/bin/python -m bench.audit [--events N]... [--engine duckdb] [--engine spark] [--table-format delta]...
                                    [--output FILE.json]

The trail is of three brokers that nobody runs: chains as brokers make them, of what 500 principals do by 2,000 client
ids to 1,000 topics in a day, by chance from a fixed seed. librdkafka writes it to `__audit_events` of one real broker
under the name that the broker's own records have, a process for each chain, hour by hour together. Then
`kavka audit run` is run twice over an empty directory: the first run reads all and answers, the second finds nothing
new of weight and answers again. What the first takes more is the reading.

Memory is the highest sum of the memory of a run and of all that it has started, looked at five times a second, where
pages that several processes share count once (Pss in /proc/PID/smaps_rollup); processors are the time of all of those.
`others` is how many processors somebody else kept busy meanwhile: with one and more of two, seconds say little, and
processor time says more.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from bench import machine, processes
from bench.audited import Audited
from kavka_broker.core.audit.chain import Chain, Entry
from kavka_broker.core.audit.cloud_events import headers_of
from kavka_broker.core.audit.events import Denied, Happening, LoggedIn, Tally
from kavka_broker.core.audit.ocsf import event_of
from kavka_broker.core.audit.quota_entities import entity_key
from kavka_broker.core.audit.usage import Throttling, Use
from kavka_broker.core.quota.entity import Entity
from kavka_broker.request.produce_policy import ADMIN_CLIENT_ID
from tools.spark_home import settings

TOPIC: Final = "__audit_events"
PRINCIPALS, CLIENTS, TOPICS = 500, 2_000, 1_000
TOPICS_OF_CLIENT: Final = 5
NODES: Final = (101, 102, 103)
DAY_MS, HOUR_MS, HOURS = 86_400_000, 3_600_000, 24
WINDOW_MS: Final = 60_000
EVENTS: Final = (1_000_000, 10_000_000)
ENGINES: Final = ("duckdb", "spark")
FORMATS: Final = ("parquet", "delta")
RUN_SECONDS_MAX: Final = 3_600.0
LOOK_SECONDS: Final = 0.2
READY_SECONDS_MAX: Final = 60.0
QUEUE_BYTES_MAX_KB: Final = 256 << 10
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Run:
    """What a run took."""

    engine: str
    table_format: str
    events: int
    which: str
    wall_seconds: float
    cpu_seconds: float
    memory_mib: float
    others_cores: float

    @property
    def cpu_us_per_event(self) -> float:
        """Processor time of an event, in microseconds."""
        return self.cpu_seconds * 1e6 / self.events


def happening(chance: random.Random, *, is_scattered: bool = False) -> Happening:
    """Return what is told by one event: use of a topic, nearly always. A client is one principal's and uses five
    topics. Scattered uses have any principal, client and topic, so that hardly two events have the same.
    """
    owned = chance.randrange(CLIENTS)
    number = chance.randrange(PRINCIPALS) if is_scattered else owned % PRINCIPALS
    used = chance.randrange(TOPICS) if is_scattered else (owned * 7 + chance.randrange(TOPICS_OF_CLIENT)) % TOPICS
    who, address = f"User:principal-{number}", f"10.0.{number // 250}.{number % 250}"
    client, topic = f"client-{owned}", f"topic-{used}"
    drawn = chance.random()
    if drawn < 0.01:
        return Denied(who, address, "READ", "topic", topic)
    if drawn < 0.02:
        return LoggedIn(who.removeprefix("User:"), address, "SASL")
    if drawn < 0.03:
        delay_ms = chance.randrange(1, 5_000)
        return Throttling(
            who, address, client, "produce", entity_key(Entity(None, client)), 1_048_576.0, delay_ms, delay_ms
        )
    is_write = drawn < 0.5
    records = chance.randrange(1, 1_000) if is_write else None
    return Use(who, address, client, "WRITE" if is_write else "READ", topic, chance.randrange(10**6), records)


def chain_of(number: int, events: int, end_ms: int, *, is_scattered: bool = False) -> Iterator[Entry]:
    """Give the entries of one of the chains; the times are those of the day before `end_ms`."""
    chance, begin_ms = random.Random(f"{events} {number}"), end_ms - DAY_MS
    chain = Chain(f"{NODES[number]}-1")
    yield chain.head(begin_ms)
    for index in range(number, events, len(NODES)):
        told_ms = begin_ms + WINDOW_MS + index * (DAY_MS - WINDOW_MS) // events
        uid = f"{chain.source}-{chain.sequence}"
        told = Tally(happening(chance, is_scattered=is_scattered), chance.randrange(1, 9), told_ms - WINDOW_MS, told_ms)
        yield chain.event(event_of(told, uid), told_ms)


def write(bootstrap: str, events: int, *, is_scattered: bool = False) -> float:
    """Write a trail; returns the seconds that it took. Raises SystemExit."""
    begun, end_ms = time.perf_counter(), int(time.time() * 1000)
    forking = get_context("fork")
    together = forking.Barrier(len(NODES))
    writers = [
        forking.Process(target=write_chain, args=(together, bootstrap, number, events, end_ms, is_scattered))
        for number in range(len(NODES))
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    if any(writer.exitcode for writer in writers):  # the others wait for one that has gone, for an hour at most
        raise SystemExit("error: a writer has failed; what it said is above")
    return time.perf_counter() - begun


def write_chain(together: Barrier, bootstrap: str, number: int, events: int, end_ms: int, is_scattered: bool) -> None:
    """Write a chain, an hour of it and then the next, as long as it takes the slowest. Raises SystemExit."""
    lost = 0

    def delivered(error: object, _: object) -> None:
        nonlocal lost
        lost += error is not None

    conf = {"bootstrap.servers": bootstrap, "client.id": ADMIN_CLIENT_ID, "compression.type": "gzip"}
    more = {"queue.buffering.max.kbytes": QUEUE_BYTES_MAX_KB, "queue.buffering.max.messages": 200_000, "linger.ms": 50}
    producer = Producer({**conf, **more}, on_delivery=delivered)
    partitions = partitions_of(producer)
    hour = 0
    for entry in chain_of(number, events, end_ms, is_scattered=is_scattered):
        while end_ms - DAY_MS + hour * HOUR_MS < entry.time_ms:
            together.wait(RUN_SECONDS_MAX)
            hour += 1
        while True:
            try:
                producer.produce(
                    TOPIC,
                    entry.value,
                    entry.source.encode(),
                    partition=number % partitions,
                    headers=[*headers_of(entry)],
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    for _ in range(hour, HOURS):
        together.wait(RUN_SECONDS_MAX)
    if producer.flush(RUN_SECONDS_MAX) or lost:
        raise SystemExit(f"error: {lost} events were refused, or not taken in time")


def partitions_of(producer: Producer) -> int:
    """Return how many partitions the topic has. Of one that was made a moment ago a broker may tell none yet. Raises
    SystemExit.
    """
    until = time.monotonic() + READY_SECONDS_MAX
    while not (found := len(producer.list_topics(TOPIC, 30).topics[TOPIC].partitions)):
        if time.monotonic() > until:
            raise SystemExit(f"error: {TOPIC} has no partitions")
        time.sleep(LOOK_SECONDS)
    return found


def family(pid: int) -> list[int]:
    """Return a process and all that it has started, as far as they live."""
    return [pid, *(one for child in machine.children_of(pid) for one in family(child))]


def ask(options: Sequence[str], directory: Path, environment: Mapping[str, str]) -> tuple[float, float, float]:
    """One run of the command: its seconds, those of processors, and MiB of memory. Raises SystemExit."""
    words = ["audit", "run", *options, "--directory", str(directory)]
    log, begun = directory.parent / "run.log", time.perf_counter()
    process = processes.start([sys.executable, "-m", "kavka_cli", *words], log, environment)
    spent: dict[int, float] = {}
    most, before = 0, set[int]()
    while process.poll() is None:
        members = set(family(process.pid))
        # Java's children have its memory until they are programs of their own: who is new is not looked at yet.
        most = max(most, sum(shared_bytes(one) for one in members & before))
        # A child that was waited for is in its parent's time too; here each counts what it did itself.
        for one in members:
            with suppress(OSError):  # it has ended meanwhile
                spent[one] = own_seconds(one)
        before = members
        if time.perf_counter() - begun > RUN_SECONDS_MAX:
            processes.stop(process)
        time.sleep(LOOK_SECONDS)
    processes.stop(process)
    if process.returncode:
        raise SystemExit(f"error: {options}: {log.read_text()[-2_000:]}")
    return time.perf_counter() - begun, sum(spent.values()), most / MIB


def shared_bytes(pid: int) -> int:
    """Return the resident memory of a process alone, with its part of what it shares with others; 0 once it has ended,
    as of a child of Java for which nothing waits.
    """
    lines = list[str]()
    with suppress(OSError):
        lines = (machine.PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def own_seconds(pid: int) -> float:
    """Return the processor time of a process without its children."""
    fields = (machine.PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / machine.TICKS_PER_SECOND


def measured(engine: str, table_format: str, events: int, broker: Audited, directory: Path) -> Iterator[Run]:
    """Give both runs of an engine over what the topic has."""
    options = ["--bootstrap", broker.bootstrap, "--engine", engine, "--table-format", table_format]
    environment = settings(directory / "conf") if engine == "spark" else {}
    for which in ("reads and answers", "answers again"):
        with machine.Meter(broker.pid) as meter:
            wall, cpu, memory = ask(options, directory / "lake", environment)
        # The meter counts as the clients' what this process has waited for, which is not all that a run has started.
        others = max(0.0, (meter.cost.others_seconds + meter.cost.client_seconds - cpu) / wall)
        yield Run(engine, table_format, events, which, wall, cpu, memory, others)


def line(run: Run) -> str:
    """Return a run as a row of a table."""
    times = f"{run.wall_seconds:.0f} s | {run.cpu_seconds:.0f} s | {run.cpu_us_per_event:.1f} us"
    figures = f"{times} | {run.memory_mib:.0f} MiB | {run.others_cores:.1f}"
    return f"| {run.events:,} | {run.engine} | {run.table_format} | {run.which} | {figures} |"


def measure(
    events: int, engines: Sequence[str], formats: Sequence[str], scratch: Path, *, is_scattered: bool = False
) -> Iterator[Run]:
    """Give the runs over a trail of so many events, on a broker of its own."""
    broker = Audited(scratch / "broker", is_audited=True)
    broker.format()
    broker.start()
    try:
        seconds = write(broker.bootstrap, events, is_scattered=is_scattered)
        print(f"{events:,} events written in {seconds:.0f} s", file=sys.stderr, flush=True)
        for engine, table_format in product(engines, formats):
            directory = scratch / f"{engine}-{table_format}"
            directory.mkdir()
            yield from measured(engine, table_format, events, broker, directory)
    finally:
        broker.stop()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.audit", description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, action="append", help="how long the trail is; may be given again")
    parser.add_argument("--engine", choices=ENGINES, action="append")
    parser.add_argument("--table-format", choices=FORMATS, action="append")
    parser.add_argument("--scattered", action="store_true", help="hardly two events of the same client and topic")
    parser.add_argument("--output", type=Path, metavar="FILE")
    asked = parser.parse_args()
    processes.end_all_at_exit()
    runs = []
    print("| events | engine | tables | run | time | processors | of an event | memory | others |\n" + "|---" * 9 + "|")
    engines, formats = asked.engine or ENGINES, asked.table_format or FORMATS[:1]
    for events in asked.events or EVENTS:
        with tempfile.TemporaryDirectory(prefix="kavka-bench-") as scratch:
            for run in measure(events, engines, formats, Path(scratch), is_scattered=asked.scattered):
                runs.append(run)
                print(line(run), flush=True)
    if asked.output is not None:
        found = {"machine": machine.describe(), "runs": [asdict(run) for run in runs]}
        asked.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
