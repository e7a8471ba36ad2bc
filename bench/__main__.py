"""Kavka beside Apache Kafka: the same clients, the same machine, one run.

python -m bench                       the quick run, about three minutes: librdkafka only
python -m bench --full                every client and size, about 25 minutes
python -m bench --section latency     one section (process, produce, consume, latency, flush); may be repeated
python -m bench --section flush       topics that are synced before each answer; in no other run
python -m bench --section tls         TLS and logins by SCRAM; in no other run
python -m bench --section transactions
                                      commits by producers of both generations; in no other run
python -m bench --section produce --strain held
                                      Kavka as it works while its disk makes writers wait (docs/adr/0025)

What the machine takes for the least that a broker does comes first. The result is printed, and written as JSON and
Markdown to bench/results/.
"""

import argparse
import platform
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bench import load, machine, memory, processes, report, sections, secured, synced, transactions
from bench import machine_limits as floors
from bench import strained_disk as strained
from bench.brokers import KAFKA, KAVKA, Broker, Product, compile_kavka, strained_kavka
from bench.measure import Measure
from bench.sections import Plan
from tools.kafka_jars import VERSION

QUICK: Final = Plan(
    repetitions=3,
    records=2_000_000,
    operations=4_000,
    warm_up_seconds=20.0,
    clients=(load.RDKAFKA,),
    sizes_bytes=(100, 1000),
    partitions=(1, 6),
    acks=("1", "all"),
    crash=False,
)
FULL: Final = replace(
    QUICK, records=4_000_000, operations=20_000, warm_up_seconds=60.0, clients=(load.RDKAFKA, load.JAVA), crash=True
)
USUAL: Final = ("process", "produce", "consume", "latency")
SECTIONS: Final = (*USUAL, synced.SECTION, secured.SECTION, transactions.SECTION)
WARM_UPS: Final = {synced.SECTION: synced.warm_up, transactions.SECTION: transactions.warm_up}  # where it is alone
RESULTS: Final = Path(__file__).parent / "results"
PRODUCTS: Final = {"kavka": KAVKA, "kafka": KAFKA}
# The warm-up teaches a JIT compiler; an interpreter has nothing to learn, and one round fills its caches.
NEEDS_WARM_UP: Final = {"kavka": False, "kafka": True}


class Run:
    """The measures of one run; each is told as it is taken."""

    def __init__(self, nice: int) -> None:
        self.measures: list[Measure] = []
        self._nice = nice

    def record(self, measure: Measure) -> None:
        self.measures.append(measure)
        figures = "  ".join(f"{name}={value:.4g}" for name, value in measure.figures.items())
        busy = f"others={measure.others_cores:.2f}"
        where = f"{measure.section:8} {measure.broker} #{measure.repetition} {measure.case}"
        print(f"{where}  {figures}  {busy}", flush=True)

    def take(self, products: Sequence[Product], wanted: Sequence[str], plan: Plan, directory: Path) -> None:
        """Every wanted section, the process first: idle means idle only before there is load."""
        if "process" in wanted:
            sections.process(products, directory / "process", plan, self.record)
        if secured.SECTION in wanted:
            secured.take(products, directory, plan, self.record)
        under_load = [section for section in wanted if section not in ("process", secured.SECTION)]
        if under_load:
            self._take_loaded(products, under_load, plan, directory)

    def _take_loaded(self, products: Sequence[Product], wanted: Sequence[str], plan: Plan, directory: Path) -> None:
        brokers = [Broker(product, directory / product.name) for product in products]
        for broker in brokers:
            broker.format()
            broker.start()
            if self._nice:
                processes.favour(self._nice, broker.pid)
            print(f"warming {broker.name} up", flush=True)
            seconds = plan.warm_up_seconds if NEEDS_WARM_UP[broker.name] else 0.0
            alone = WARM_UPS.get(wanted[0]) if len(wanted) == 1 else None
            if alone is not None:
                alone(broker, seconds or synced.SECONDS)
            else:
                sections.warm_up(broker, plan, seconds)
        # From here on, not earlier: the brokers' own memory should not come out of it.
        with memory.Pool(memory.pool_bytes()):
            self._take_sections(brokers, wanted, plan)
        for broker in brokers:
            resident = machine.rss_bytes(broker.pid) / 2**20
            self.record(Measure("process", "RSS after the load, MiB", broker.name, 0, {"cost": resident}))
            broker.stop()

    def _take_sections(self, brokers: Sequence[Broker], wanted: Sequence[str], plan: Plan) -> None:
        takers = {"produce": sections.produce, "consume": sections.consume, "latency": sections.one_at_a_time,
                  synced.SECTION: synced.take, transactions.SECTION: transactions.take}  # fmt: skip
        for section in wanted:
            takers[section](brokers, plan, self.record)


def told_floors(directory: Path) -> dict[str, float]:
    """Measure the floors of the machine before the products."""
    found = floors.measure(directory)
    print("  ".join(f"{name}={value:g}" for name, value in found.items()), flush=True)
    return found


def environment(plan: Plan, started: float, found: Mapping[str, float]) -> dict[str, object]:
    """What a reader has to know to weigh the figures."""
    return {
        **found,
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime(started)),
        "took_seconds": round(time.time() - started),
        **machine.describe(),
        "python": platform.python_version(),
        "apache_kafka": VERSION,
        "repetitions": plan.repetitions,
        "records": plan.records,
        "operations": plan.operations,
        "warm_up_seconds": plan.warm_up_seconds,
    }


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="all clients, more records, a minute of warm-up")
    parser.add_argument("--section", action="append", choices=SECTIONS, help="only this; may be repeated")
    parser.add_argument("--broker", action="append", choices=tuple(PRODUCTS), help="only this one")
    parser.add_argument(
        "--client", action="append", choices=(load.RDKAFKA, load.JAVA), help="only this; may be repeated"
    )
    parser.add_argument("--size", action="append", type=int, metavar="BYTES", help="record size; may be repeated")
    parser.add_argument("--partitions", action="append", type=int, metavar="N", help="may be repeated")
    parser.add_argument("--acks", action="append", choices=("0", "1", "all"), help="may be repeated")
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--records", type=int, help="of 100 B with librdkafka; the other loads follow from it")
    parser.add_argument("--operations", type=int, help="of the latency section")
    parser.add_argument("--warm-up-seconds", type=float)
    parser.add_argument(
        "--strain", choices=strained.HOWS, help="Kavka takes every large write, or the whole disk, for held back"
    )
    parser.add_argument("--directory", type=Path, help="where the brokers keep their logs; a temporary one by default")
    parser.add_argument("--nice", type=int, default=0, help="of brokers and clients against other programs (root)")
    parser.add_argument("--output", type=Path, help="the result's path without ending; bench/results/DATE by default")
    return parser.parse_args()


def plan_of(chosen: argparse.Namespace) -> Plan:
    """The quick or the full plan, with what was asked for in its place."""
    asked = {
        "clients": chosen.client,
        "sizes_bytes": chosen.size,
        "partitions": chosen.partitions,
        "acks": chosen.acks,
        "repetitions": chosen.repetitions,
        "records": chosen.records,
        "operations": chosen.operations,
        "warm_up_seconds": chosen.warm_up_seconds,
    }
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()}
    return replace(FULL if chosen.full else QUICK, **{n: v for n, v in given.items() if v is not None})


def main() -> None:
    chosen = options()
    plan, started = plan_of(chosen), time.time()
    known = PRODUCTS | ({"kavka": strained_kavka(chosen.strain)} if chosen.strain else {})
    products = [known[name] for name in chosen.broker or known]
    processes.end_all_at_exit()
    compile_kavka()
    directory = Path(tempfile.mkdtemp(prefix="kavka-bench-", dir=chosen.directory))
    run, found = Run(chosen.nice), told_floors(directory)
    try:
        run.take(products, chosen.section or USUAL, plan, directory)
    finally:
        processes.stop_all()
        shutil.rmtree(directory, ignore_errors=True)
    about = environment(plan, started, found)
    print("\n" + report.text(run.measures))
    output = chosen.output or RESULTS / time.strftime("%Y-%m-%d-%H%M", time.gmtime(started))
    report.write(output, run.measures, about)
    print(f"written to {output}.json and {output}.md")


if __name__ == "__main__":
    main()
