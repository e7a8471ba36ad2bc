"""Crowds under quotas: what connections cost that are held, and client ids that nobody has heard of.

python -m bench.crowd                             1,000 and 10,000 held connections, a million client ids
python -m bench.crowd --connections 1000 --ids 0   only the first

A held connection belongs to a client that is over its limit: it has its answer, and the broker does not read from it.
What a broker spends on so many of them is told beside what the same connections cost when they only stand.

Invented client ids are all under the limit of the default client id, so each has a rate of its own to be measured; what
is told is how much memory a broker has taken for them, and how long requests of the last of them took beside the first.
A broker that gives no answer for 30 s has had its turn: how many it had answered is told then, too.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import confluent_kafka.admin as kafka_admin

from bench import machine, processes, topics, wire
from bench.__main__ import PRODUCTS, Run
from bench.brokers import Broker, Product
from bench.measure import Measure
from bench.repetitions import percentile
from bench.script import measuring

HELD: Final = "held"
WATCHED_SECONDS: Final = 10.0
SETTLE_SECONDS: Final = 3.0
LIMIT: Final = 1.0  # bytes/s: one request holds its connection for hours
DEFAULT_LIMIT: Final = 1e9
HELD_SHARE_MIN: Final = 0.5
VALUE: Final = b"x" * 1000
TIMED_IDS: Final = 10_000
MB: Final = 1e6


def limit(broker: Broker, client_id: str | None, bytes_per_second: float) -> None:
    """Set the produce quota of a client id, or of the default one."""
    frame = wire.client_quota_frame(client_id, "producer_byte_rate", bytes_per_second)
    with wire.Connection(broker.port) as connection:
        error = wire.client_quota_error(connection.ask(frame))
    if error:
        raise processes.ClientError(f"{broker.name}: the quota was refused with error {error}")
    time.sleep(SETTLE_SECONDS)


@contextmanager
def connections(broker: Broker, count: int) -> Iterator[list[wire.Connection]]:
    with ExitStack() as stack:
        yield [stack.enter_context(wire.Connection(broker.port, bytes_max=256)) for _ in range(count)]


def cores(broker: Broker) -> float:
    """How much of a core the broker takes, while nobody asks it anything."""
    time.sleep(SETTLE_SECONDS)
    with machine.Meter(broker.pid) as meter:
        time.sleep(WATCHED_SECONDS)
    return meter.cost.broker.total / meter.cost.wall_seconds


def held_connections(broker: Broker, topic: str, count: int) -> dict[str, float]:
    """Cores for connections that stand, and for the same ones held."""
    with connections(broker, count) as made:
        idle = cores(broker)
        frame = wire.produce_frame(topic, 0, VALUE, 1, HELD.encode())
        for connection in made:
            connection.send(frame)
        told = [wire.produce_throttle_ms(connection.receive()) for connection in made]
        share = 1 - told.count(0) / count
        if share < HELD_SHARE_MIN:
            raise processes.ClientError(f"{broker.name}: {share:.0%} of the connections are held")
        return {"idle_cores": idle, "held_share": share, "held_cores": cores(broker)}


def invented_ids(broker: Broker, topic: str, count: int) -> dict[str, float]:
    """Memory for client ids that come once, how many were answered, and latencies of the first and of the last."""
    before = machine.rss_bytes(broker.pid)
    took_ms: list[float] = []
    with wire.Connection(broker.port) as connection, suppress(TimeoutError):
        for number in range(count):
            frame = wire.produce_frame(topic, 0, b"x", 1, b"invented-%d" % number)
            started = time.perf_counter()
            wire.produced_offset(connection.ask(frame), topic)
            took_ms.append((time.perf_counter() - started) * 1000)
    grown = machine.rss_bytes(broker.pid) - before
    first, last = sorted(took_ms[:TIMED_IDS]), sorted(took_ms[-TIMED_IDS:])
    answered = len(took_ms)
    return {
        "answered": answered,
        "grown_mb": grown / MB,
        "first_p99_ms": percentile(first, 99),
        "last_p99_ms": percentile(last, 99),
    }


def take(product: Product, directory: Path, counts: Sequence[int], ids: int, run: Run) -> None:
    broker = Broker(product, directory)
    broker.format()
    broker.start()
    topics.create(kafka_admin.AdminClient({"bootstrap.servers": broker.bootstrap}), "crowd", 1)
    try:
        limit(broker, HELD, LIMIT)
        for count in counts:
            found = held_connections(broker, "crowd", count)
            run.record(Measure("crowd", f"{count:,} connections", broker.name, 0, found))
        if ids:
            limit(broker, None, DEFAULT_LIMIT)
            run.record(Measure("crowd", f"{ids:,} client ids", broker.name, 0, invented_ids(broker, "crowd", ids)))
    finally:
        broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.crowd", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, action="append", help="how many are held")
    parser.add_argument("--ids", type=int, default=1_000_000, help="how many client ids are invented")
    parser.add_argument("--broker", action="append", choices=tuple(PRODUCTS), help="only this one")
    parser.add_argument("--output", type=Path, help="the result's path without ending; bench/results/DATE by default")
    chosen = parser.parse_args()
    with measuring("crowd", chosen.output) as (run, root):
        for name in chosen.broker or PRODUCTS:
            take(PRODUCTS[name], root / name, chosen.connections or (1_000, 10_000), chosen.ids, run)


if __name__ == "__main__":
    main()
