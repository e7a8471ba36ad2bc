"""What the audit trail costs: one broker with it and one without, under the same clients, in alternating pairs.

    .venv/bin/python -m bench.audited [--pairs 10] [--records N] [--output FILE.json]

Every pair is one run on each broker, close together, and every second pair begins with the other one; what is told is
the median over the pairs of the ratio, audited : plain. Clients are librdkafka's own load generator with the settings
that clients have by default (large batches), with ten records a batch and no linger (as many requests as it can send),
and as many client ids as an interval tells apart, each of which is a pair of client and topic.

Memory is the resident memory of both at the end of all of that, and how much more the audited broker holds.
"""

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import load, machine, memory, processes, topics, wire
from bench.brokers import KAVKA, Broker, compile_kavka
from bench.load import Load
from bench.sections import alternating
from kavka_broker.core.audit.usage import PAIRS_MAX

SMALL: Final = ("-X", "batch.num.messages=10", "-X", "linger.ms=0")
RECORD_BYTES: Final = 100
MIB: Final = 1 << 20
FIGURES: Final = ("records_per_second", "cpu_seconds_per_gb")


@dataclass(frozen=True, slots=True)
class Case:
    """A load of the client, and what it is told besides."""

    name: str
    partitions: int
    records: int
    acks: str
    more: tuple[str, ...] = ()


def cases(records: int) -> list[Case]:
    """What is measured; small batches take about ten times as long for a record."""
    return [
        Case("default batches, 1 partition, acks=all", 1, records, "all"),
        Case("default batches, 6 partitions, acks=1", 6, records, "1"),
        Case("10 records a batch, 1 partition, acks=1", 1, records // 8, "1", SMALL),
    ]


class Audited(Broker):
    """A broker by the name `audited`, with the key that it signs its trail with, or `plain` without."""

    def __init__(self, directory: Path, *, is_audited: bool) -> None:
        super().__init__(KAVKA, directory)
        self.name = "audited" if is_audited else "plain"
        self._is_audited = is_audited

    def format(self) -> None:
        """Write the configuration and prepare the log directory."""
        super().format()
        if self._is_audited:
            key = self.directory / "audit.key"
            key.write_bytes(b"k" * 32)
            with (self.directory / "server.properties").open("a") as settings:
                settings.write(f"kavka.audit.key.file={key}\nkavka.audit.interval.ms=10000\n")


def measure(broker: Broker, case: Case) -> dict[str, float]:
    """One run of a case."""
    what = Load(load.RDKAFKA, RECORD_BYTES, case.partitions, case.records, case.acks)
    with topics.topic(broker.bootstrap, case.partitions) as topic, machine.Meter(broker.pid) as meter:
        command = [*load.rdkafka_produce_command(broker.bootstrap, topic, what), *case.more]
        outcome = load.parse_rdkafka_produced(processes.run(command, check=False), what.records)
    gigabytes = outcome.records_in_all * RECORD_BYTES / 1e9
    cost = meter.cost
    return {
        "records_per_second": outcome.records_per_second,
        "cpu_seconds_per_gb": cost.broker.total / gigabytes,
        "others_cores": cost.others_cores,
    }


def meet(broker: Broker) -> None:
    """As many clients as an interval tells apart, each with one record."""
    with topics.topic(broker.bootstrap, 1) as topic:
        for number in range(PAIRS_MAX):
            with wire.Connection(broker.port) as connection:
                connection.ask(wire.produce_frame(topic, 0, b"x" * RECORD_BYTES, 1, client_id=f"c-{number}".encode()))


def ratios(runs: Sequence[Mapping[str, Mapping[str, float]]], figure: str) -> list[float]:
    """Audited : plain, of each pair."""
    return sorted(run["audited"][figure] / run["plain"][figure] for run in runs)


def told(name: str, runs: Sequence[Mapping[str, Mapping[str, float]]]) -> str:
    """A line of a case."""
    parts = []
    for figure in FIGURES:
        found = ratios(runs, figure)
        parts.append(f"{figure} {statistics.median(found):.4f} ({found[0]:.3f} to {found[-1]:.3f})")
    plain = statistics.median(run["plain"]["records_per_second"] for run in runs)
    others = statistics.median(run["plain"]["others_cores"] for run in runs)
    return f"{name:42} {'  '.join(parts)}  plain {plain / 1000:.0f} k/s, others {others:.2f} cores"


def main() -> None:
    """Measure, and print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--records", type=int, default=2_000_000, help="of a run with default batches")
    parser.add_argument("--output", type=Path, help="a file for every figure, as JSON")
    chosen = parser.parse_args()
    processes.end_all_at_exit()
    compile_kavka()
    root = Path(tempfile.mkdtemp(prefix="kavka-bench-"))
    try:
        found = measure_all(root, chosen.pairs, chosen.records)
    finally:
        processes.stop_all()
        shutil.rmtree(root, ignore_errors=True)
    if chosen.output is not None:
        chosen.output.write_text(json.dumps(found, indent=1) + "\n")


def measure_all(root: Path, pairs: int, records: int) -> dict[str, object]:
    """Every case on both brokers; returns every figure."""
    brokers = [Audited(root / name, is_audited=name == "audited") for name in ("plain", "audited")]
    for broker in brokers:
        broker.format()
        broker.start()
        meet(broker)
        measure(broker, cases(records // 4)[0])  # warms the client's files and the broker up
    found: dict[str, object] = {}
    with memory.Pool(memory.pool_bytes()):
        for case in cases(records):
            runs = [
                {broker.name: measure(broker, case) for broker in alternating(brokers, pair)} for pair in range(pairs)
            ]
            found[case.name] = runs
            print(told(case.name, runs), flush=True)
    held = {}
    for broker in brokers:
        meet(broker)
        held[broker.name] = machine.rss_bytes(broker.pid) / MIB
    print(f"memory: plain {held['plain']:.1f} MiB, audited {held['audited'] - held['plain']:+.1f} MiB")
    return {**found, "memory_mib": held}


if __name__ == "__main__":
    main()
