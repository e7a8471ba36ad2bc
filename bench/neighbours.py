"""What a client suffers from its neighbours: two light clients alone, and beside each of thirteen aggressors.

python -m bench.neighbours                         both products, with and without a quota on the aggressor: 13 minutes
python -m bench.neighbours --only "tiny" --seconds 5
python -m bench.neighbours --rounds 3              the median of three, the products in turn: where others are at work

One producer sends 100 B each ms, one consumer reads 1 MB/s as it is written; the figures are how long they had to wait.
Broker, victims and aggressor share the machine: each is a session of its own, among which the kernel divides the cores
evenly. That weighs on both products alike.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import admin as kafka_admin

from bench import machine, processes, topics, wire
from bench.__main__ import PRODUCTS, Run
from bench.aggressors import AGGRESSORS, CLIENT_ID, OF_WIDE, prepare, throw_out
from bench.brokers import Broker, Product
from bench.measure import Measure
from bench.script import measuring

ALONE: Final = "alone"
VICTIMS: Final = ("produce", "consume")
WARM_UP_SECONDS: Final = 15.0
BEGIN_SECONDS: Final = 2.0
SETTLE_SECONDS: Final = 1.5
VICTIM_SECONDS_MAX: Final = 120.0
LIMITED: Final = ", with a quota"
#: A hundredth of what the machine can do, so that what is left is what the quota lets through.
LIMITS: Final[Mapping[str, float]] = {
    "producer_byte_rate": 1e6, "consumer_byte_rate": 1e6, "request_percentage": 1.0, "controller_mutation_rate": 1.0,
}  # fmt: skip


def waited(broker: Broker, seconds: float) -> dict[str, float]:
    """How long both victims had to wait, side by side."""
    command = [sys.executable, "-m", "bench.victims"]
    playing = {
        what: subprocess.Popen(
            [*command, what, str(broker.port), f"victim-{what}", str(seconds)],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        for what in VICTIMS
    }
    found: dict[str, float] = {}
    for what, process in playing.items():
        told, _ = process.communicate(timeout=VICTIM_SECONDS_MAX)
        if process.returncode:
            raise processes.ClientError(f"{broker.name}: the victim that wants to {what} has failed")
        found |= {f"{what}_{name}": value for name, value in json.loads(told).items()}
    return found


@contextmanager
def aggression(broker: Broker, name: str) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.aggressors", name, str(broker.port)]
    process = processes.start(command, broker.directory / "aggressor.log")
    try:
        time.sleep(BEGIN_SECONDS)
        if process.poll() is not None:
            raise processes.ClientError(f"{name} has ended: {(broker.directory / 'aggressor.log').read_text()[-2000:]}")
        yield
    finally:
        process.kill()
        process.wait()
        time.sleep(SETTLE_SECONDS)


@contextmanager
def limited(broker: Broker) -> Iterator[None]:
    """Quotas on the aggressor's client id, and none behind it."""
    set_limits(broker, LIMITS)
    yield
    set_limits(broker, dict.fromkeys(LIMITS, 1e9))


def set_limits(broker: Broker, limits: Mapping[str, float]) -> None:
    with wire.Connection(broker.port) as connection:
        for key, limit in limits.items():
            error = wire.client_quota_error(connection.ask(wire.client_quota_frame(CLIENT_ID, key, limit)))
            if error:
                raise processes.ClientError(f"{broker.name}: {key} was refused with error {error}")


def take(product: Product, directory: Path, names: list[str], seconds: float, run: Run, turn: int) -> None:
    broker = Broker(product, directory)
    broker.format()
    broker.start()
    admin = kafka_admin.AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for what in VICTIMS:
        topics.create(admin, f"victim-{what}", 1)
    prepare(broker.bootstrap, is_wide=False)
    waited(broker, WARM_UP_SECONDS)
    record(run, broker, ALONE, seconds, turn)
    for name in names:
        if name in OF_WIDE and not is_made(admin):
            prepare(broker.bootstrap, is_wide=True)
        with aggression(broker, name):
            if name == "fetch from cold":
                throw_out(directory)
            record(run, broker, name, seconds, turn)
        with limited(broker), aggression(broker, name):
            record(run, broker, name + LIMITED, seconds, turn)
    broker.stop()


def is_made(admin: kafka_admin.AdminClient) -> bool:
    return "wide" in admin.list_topics(timeout=VICTIM_SECONDS_MAX).topics


def record(run: Run, broker: Broker, case: str, seconds: float, turn: int) -> None:
    with machine.Meter(broker.pid) as meter:
        found = waited(broker, seconds)
    found["broker_cores"] = meter.cost.broker.total / meter.cost.wall_seconds
    run.record(Measure("neighbours", case, broker.name, turn, found, meter.cost.others_cores))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.neighbours", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="of each cell")
    parser.add_argument("--rounds", type=int, default=1, help="how often each cell is measured; the median counts")
    parser.add_argument("--only", default="", help="only aggressors whose name has this in it")
    parser.add_argument("--broker", action="append", choices=tuple(PRODUCTS), help="only this one")
    parser.add_argument("--output", type=Path, help="the result's path without ending; bench/results/DATE by default")
    chosen = parser.parse_args()
    names = [name for name in AGGRESSORS if chosen.only in name]
    with measuring("neighbours", chosen.output, seconds=chosen.seconds) as (run, root):
        for turn in range(chosen.rounds):
            for name in chosen.broker or PRODUCTS:
                take(PRODUCTS[name], root / f"{name}-{turn}", names, chosen.seconds, run, turn)


if __name__ == "__main__":
    main()
