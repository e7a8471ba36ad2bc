"""How long the log cleaner takes over the same segments on both brokers, and what a neighbour has of it.

python -m bench.cleaning --records 400000

Kavka writes a compacted topic, whose files are copied to Apache Kafka's directory. On each of them a neighbour, one
connection with one request under way, produces for a while alone; then the cleaner is let in
(`min.cleanable.dirty.ratio`), and the neighbour goes on until it is done. The CPU of the cleaning is that of the broker
without what the neighbour's requests took when it was alone.
"""

import argparse
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import confluent_kafka as ck
from confluent_kafka import admin as kafka_admin

from bench import machine, processes, topics, wire
from bench.brokers import KAFKA, KAVKA, Broker, compile_kavka
from bench.repetitions import percentile

COMPACTED: Final = "compacted"
NEIGHBOUR: Final = "neighbour"
NEVER, SOON = "1", "0.01"
CONFIG: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": NEVER,
    "segment.bytes": str(16 << 20),
    "delete.retention.ms": "0",
}
VALUES: Final = (("100 B", 100), ("1 KB", 1_000))
ALONE_SECONDS: Final = 3.0
CLEAN_SECONDS_MAX: Final = 600.0
BATCH_RECORDS: Final = 50
#: What of a topic's directory is copied.
COPIED: Final = (".log", ".index", ".timeindex", "leader-epoch-checkpoint")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """One cleaning, and its neighbour's requests, in ms, without it and beside it."""

    seconds: float
    cpu_seconds: float
    alone_ms: list[float]
    beside_ms: list[float]
    others_cores: float
    left_bytes: int


def fill(broker: Broker, topic: str, records: int, value_bytes: int) -> None:
    """So many records, each key ten times on average, in small batches."""
    chosen, value = random.Random(1), b"x" * value_bytes
    producer = ck.Producer(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "batch.num.messages": BATCH_RECORDS, "log_level": 0}
    )
    for number in range(records):
        producer.produce(topic, value, b"key-%08d" % chosen.randrange(records // 10), partition=0)
        if number % 1_000 == 0:
            producer.poll(0)
            while len(producer) > 50_000:
                producer.poll(0.05)
    if producer.flush(CLEAN_SECONDS_MAX):
        raise processes.ClientError("not all records were taken")


def produce_until(broker: Broker, is_done: Callable[[], bool]) -> list[float]:
    """The neighbour's requests, one after the other, in ms and sorted."""
    frame, taken = wire.produce_frame(NEIGHBOUR, 0, b"x" * 100, -1), list[float]()
    with wire.Connection(broker.port) as connection:
        while not is_done():
            began = time.perf_counter()
            wire.produced_offset(connection.ask(frame), NEIGHBOUR)
            taken.append((time.perf_counter() - began) * 1000)
            time.sleep(0.001)
    return sorted(taken)


def wait_until_led(broker: Broker) -> None:
    """A broker that has just started leads nothing yet."""
    frame, deadline = wire.produce_frame(NEIGHBOUR, 0, b"x", -1), time.monotonic() + topics.ADMIN_SECONDS_MAX
    with wire.Connection(broker.port) as connection:
        while True:
            try:
                wire.produced_offset(connection.ask(frame), NEIGHBOUR)
            except wire.WireError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return


def let_clean(broker: Broker, topic: str) -> None:
    entry = kafka_admin.ConfigEntry(
        "min.cleanable.dirty.ratio", SOON, incremental_operation=kafka_admin.AlterConfigOpType.SET
    )
    resource = kafka_admin.ConfigResource(kafka_admin.ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = kafka_admin.AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(topics.ADMIN_SECONDS_MAX)


def is_clean(broker: Broker, topic: str) -> bool:
    """Whether its checkpoint says that all but the active segment is cleaned."""
    data = broker.directory / "data"
    active = int(max((data / f"{topic}-0").glob("*.log")).stem)
    path = data / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines() if path.exists() else []
    return any(line.split()[2] == str(active) for line in lines if line.startswith(f"{topic} 0 "))


def clean(broker: Broker, topic: str) -> Cleaned:
    end = time.perf_counter() + ALONE_SECONDS
    with machine.Meter(broker.pid) as before:
        alone = produce_until(broker, lambda: time.perf_counter() >= end)
    began = time.perf_counter()
    with machine.Meter(broker.pid) as meter:
        let_clean(broker, topic)
        beside = produce_until(
            broker, lambda: is_clean(broker, topic) or time.perf_counter() > began + CLEAN_SECONDS_MAX
        )
    own = before.cost.broker.total / len(alone) * len(beside)
    left = log_bytes(broker, topic)
    cost = meter.cost
    return Cleaned(cost.wall_seconds, cost.broker.total - own, alone, beside, cost.others_cores, left)


def log_bytes(broker: Broker, topic: str) -> int:
    return sum(path.stat().st_size for path in (broker.directory / "data" / f"{topic}-0").glob("*.log"))


def copy_topic(source: Broker, target: Broker, topic: str) -> None:
    """Have the second broker, which is stopped, hold the same segments."""
    from_directory, to_directory = (one.directory / "data" / f"{topic}-0" for one in (source, target))
    for path in to_directory.iterdir():
        if path.name.endswith(COPIED):
            path.unlink()
    for path in from_directory.iterdir():
        if path.name.endswith(COPIED):
            shutil.copy(path, to_directory)


def told(value: str, broker: Broker, before_bytes: int, found: Cleaned) -> None:
    megabytes = before_bytes / 1e6
    neighbour = "  ".join(
        f"p{share} {percentile(found.alone_ms, share):.2f} -> {percentile(found.beside_ms, share):.2f} ms"
        for share in (50, 99)
    )
    print(
        f"{value:6} {broker.name:6} {megabytes:6.0f} MB to {found.left_bytes / 1e6:5.0f}  {found.seconds:6.1f} s  "
        f"{megabytes / found.seconds:6.1f} MB/s  cpu {found.cpu_seconds:6.2f} s  "
        f"{megabytes / found.cpu_seconds:6.1f} MB/cpu s  neighbour {neighbour}  others {found.others_cores:.2f} cores",
        flush=True,
    )


def run(root: Path, records: int) -> None:
    ours, theirs = (Broker(product, root / product.name) for product in (KAVKA, KAFKA))
    for broker in (ours, theirs):
        broker.format()
        with (broker.directory / "server.properties").open("a") as config:
            config.write("log.cleaner.backoff.ms=100\n")
        broker.start()
        admin = kafka_admin.AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        topics.create(admin, NEIGHBOUR, 1)
        for value, _ in VALUES:
            topics.create(admin, name_of(value), 1, config=CONFIG)
        if broker is ours:
            for value, value_bytes in VALUES:
                fill(broker, name_of(value), records * 100 // value_bytes, value_bytes)
        broker.stop()
    for value, _ in VALUES:
        copy_topic(ours, theirs, name_of(value))
    for broker in (ours, theirs):
        broker.start()
        wait_until_led(broker)
        for value, _ in VALUES:
            before_bytes = log_bytes(broker, name_of(value))
            told(value, broker, before_bytes, clean(broker, name_of(value)))
        broker.stop()


def name_of(value: str) -> str:
    return f"{COMPACTED}-{value.replace(' ', '')}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.cleaning", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=400_000, help="of 100 B; of 1 KB a tenth of that")
    parser.add_argument("--directory", type=Path, help="where the brokers keep their logs; a temporary one by default")
    chosen = parser.parse_args()
    processes.end_all_at_exit()
    compile_kavka()
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    root = Path(tempfile.mkdtemp(prefix="kavka-cleaning-", dir=chosen.directory))
    try:
        run(root, chosen.records)
    finally:
        processes.stop_all()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
