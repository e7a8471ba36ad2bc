"""Quotas under real clients on three brokers, Kavka and Apache Kafka at once.

python -m bench.quotas                             nine clients under 1 MiB/s, three minutes
python -m bench.quotas --matrix                    64 KiB/s to 100 MiB/s, 1 to 50 % of the time, 1 to 50 partitions a
                                                   second: 40 s each behind 15 s of warm-up, a quarter of an hour
python -m bench.quotas --section mutations         one section of the matrix; may be repeated
python -m bench.quotas --seconds 60 --broker kavka --client librdkafka

Every client has a client id of its own under a quota, with the default window, and sends or reads as fast as it is let.
What is told is the rate that it reached, as a part of its limit: over the whole run, in which ten seconds' worth pass
at once, and after the warm-up; how many seconds' worth it got ahead of its limit at most (the first burst), the longest
time without any progress, and the least of its connections beside the greatest. Of a percentage the brokers count
themselves what was taken (`quota_time`). Over minutes both products run side by
side, so that what else the machine does weighs on both; of the matrix each runs a group of cases alone, one behind the
other, since two cores cannot carry the clients of both.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import confluent_kafka as ck

from bench import machine, processes, topics, wire
from bench.__main__ import PRODUCTS
from bench.brokers import KAVKA
from bench.measure import Measure
from bench.mutation_clients import KafkaPythonAdmin
from bench.quota_cases import LONG, MATRIX, TIME, Case
from bench.quota_clients import Client, JavaProducer, KafkaPythonProducer, Several
from bench.quota_time import TimeTaken, of_client, time_taken
from bench.script import measuring
from bench.three_brokers import Trio

LONG_SECONDS: Final = 180.0
LONG_WARM_UP_SECONDS: Final = 30.0
MATRIX_SECONDS: Final = 55.0
MATRIX_WARM_UP_SECONDS: Final = 15.0
SAMPLE_SECONDS: Final = 0.05
WAVE_SECONDS_MIN: Final = 1.0
FILLED_BYTES: Final = 32 * 1024 * 1024
FILLED_RECORD_BYTES: Final = 16 * 1024
FLUSH_SECONDS_MAX: Final = 60.0
HELD_LINE: Final = "kavka_client_throttle_seconds_total{"


@dataclass(frozen=True, slots=True)
class Sample:
    """What a client had taken at a time, and each of its connections."""

    at: float
    taken: int
    parts: tuple[int, ...] = ()


@dataclass(slots=True)
class Watched:
    """One client on one product, what it had taken at which time, and what was counted of its time."""

    trio: Trio
    case: Case
    client_id: str
    client: Client
    time_taken: TimeTaken | None
    samples: list[Sample] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def sample(self) -> None:
        if self.client.failure:
            raise processes.ClientError(f"{self.trio.name}: {self.case.name}: {self.client.failure}")
        if self.client.taken or self.samples:
            clients = self.client.clients if isinstance(self.client, Several) else ()
            parts = tuple(client.taken for client in clients)
            self.samples.append(Sample(time.monotonic(), self.client.taken, parts))


def figures_of(samples: Sequence[Sample], limit: float, warm_up_seconds: float) -> dict[str, float]:
    """Rates as parts of the limit, seconds' worth ahead of it, longest stall, least of the connections : greatest."""
    began = samples[0].at
    later = [sample for sample in samples if sample.at - began >= warm_up_seconds]
    first, last = whole_waves(later)
    found = {
        "of_limit": samples[-1].taken / (samples[-1].at - began) / limit,
        "of_limit_later": (last.taken - first.taken) / (last.at - first.at) / limit,
        "burst_seconds": max(sample.taken / limit - (sample.at - began) for sample in samples),
        "stall_seconds": max(gap for _, gap in gaps(later)),
    }
    if last.parts:
        got = [after - before for before, after in zip(first.parts, last.parts, strict=True)]
        found["spread"] = min(got) / max(1, *got)
    return found


def gaps(samples: Sequence[Sample]) -> list[tuple[Sample, float]]:
    """The last sample of each time without progress, with its seconds."""
    found, still = [], samples[0]
    for before, after in pairwise(samples):
        if after.taken > before.taken:
            found.append((before, before.at - still.at))
            still = after
    return [*found, (samples[-1], samples[-1].at - still.at)]


def whole_waves(samples: Sequence[Sample]) -> tuple[Sample, Sample]:
    """Two samples between which lie whole waves: a client that is held for long moves in them, and a part of one would
    count for too much. All samples where there are none.
    """
    found = gaps(samples)[:-1]
    longest = max((gap for _, gap in found), default=0.0)
    ends = [sample for sample, gap in found if gap > max(WAVE_SECONDS_MIN, longest / 2)]
    return (ends[0], ends[-1]) if len(ends) > 1 else (samples[0], samples[-1])


def set_quota(trio: Trio, client_id: str, case: Case) -> None:
    with wire.Connection(trio.members[0].port) as connection:
        error = wire.client_quota_error(connection.ask(wire.client_quota_frame(client_id, case.key, case.limit)))
    if error:
        raise processes.ClientError(f"{trio.name}: the quota was refused with error {error}")


def fill(trio: Trio, topic: str) -> None:
    """Something to read, written without a quota."""
    producer = ck.Producer({"bootstrap.servers": trio.bootstrap, "acks": "all", "log_level": 0})
    for _ in range(FILLED_BYTES // FILLED_RECORD_BYTES):
        producer.produce(topic, bytes(FILLED_RECORD_BYTES), partition=0)
    if producer.flush(FLUSH_SECONDS_MAX):
        raise processes.ClientError(f"{trio.name}: {topic} could not be filled")


def prepared(trio: Trio, case: Case, name: str) -> tuple[str, str]:
    """A topic of its own for a client, and its client id with a quota."""
    topic, client_id = f"quota-{name}", f"client-{name}"
    topics.create(trio.admin(), topic, 1, case.replicas)
    trio.wait_whole(topic, 1, case.replicas)
    set_quota(trio, client_id, case)
    if case.reads:
        fill(trio, topic)
    return topic, client_id


def held_seconds(trio: Trio, client_id: str) -> float:
    """The time that a client was held, as the three brokers count it."""
    pages = [f"http://127.0.0.1:{member.admin_port}/metrics" for member in trio.members]
    return sum(of_client(page, HELD_LINE, client_id) for page in pages)


@contextmanager
def running(trio: Trio, nice: int) -> Iterator[Trio]:
    trio.nice = nice
    trio.start()
    try:
        yield trio
    finally:
        trio.stop()


def watch(trios: Sequence[Trio], cases: Sequence[Case], group: str, seconds: float) -> list[Watched]:
    """Start every client on every product at once, and look on."""
    places = [
        (trio, case, *prepared(trio, case, f"{group}{number}")) for trio in trios for number, case in enumerate(cases)
    ]
    time.sleep(2.0)  # every broker is to have heard of the quotas
    watched = [begun(*place) for place in places]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(SAMPLE_SECONDS)
        for one in watched:
            one.sample()
    return watched


def begun(trio: Trio, case: Case, topic: str, client_id: str) -> Watched:
    taken = time_taken(trio, trio.leader_of_most(topic), client_id) if case.key == TIME else None
    return Watched(trio, case, client_id, case.make(trio, topic, client_id), taken)


def figures(one: Watched, warm_up_seconds: float) -> dict[str, float]:
    if not one.samples:
        raise processes.ClientError(f"{one.trio.name}: {one.case.name}: nothing was taken")
    found = figures_of(one.samples, one.case.limit, warm_up_seconds) | {"taken": one.samples[-1].taken}
    if one.time_taken is not None:
        del found["of_limit"]  # it is of bytes, and the limit is not
        found |= one.time_taken.figures(one.case.limit, one.began, warm_up_seconds)
    if not isinstance(one.client, JavaProducer | KafkaPythonProducer | KafkaPythonAdmin):
        found["told_seconds"] = one.client.told_ms / 1000
    if one.trio.product is KAVKA:
        found["held_share"] = held_seconds(one.trio, one.client_id) / (time.monotonic() - one.began)
    return found


def take(
    trios: Sequence[Trio], cases: Sequence[Case], timing: "Timing", record: Callable[[Measure], None], group: int = 0
) -> None:
    pids = [pid for trio in trios for pid in trio.pids]
    with machine.Meter(*pids) as meter:
        watched = watch(trios, cases, f"{group}-", timing.seconds)
        measured = [(one, figures(one, timing.warm_up_seconds)) for one in watched]
    for one, found in measured:
        record(Measure("quotas", one.case.name, one.trio.name, 0, found, meter.cost.others_cores))
    for one in watched:
        one.client.stop()
        if one.time_taken is not None:
            one.time_taken.stop()


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a group of cases runs, and how much of it is not judged."""

    seconds: float
    warm_up_seconds: float


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quotas", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--matrix", action="store_true", help="all sections: every kind of quota, small and large")
    parser.add_argument("--section", action="append", choices=tuple(MATRIX), help="of the matrix only this")
    parser.add_argument("--seconds", type=float, help="of each group of cases")
    parser.add_argument("--warm-up", type=float, help="seconds that are not judged")
    parser.add_argument("--broker", action="append", choices=tuple(PRODUCTS), help="only this one")
    parser.add_argument("--client", default="", help="only cases whose name has this in it")
    parser.add_argument("--nice", type=int, default=0, help="of brokers and clients against other programs (root)")
    parser.add_argument("--output", type=Path, help="the result's path without ending; bench/results/DATE by default")
    return parser.parse_args()


def groups_of(chosen: argparse.Namespace) -> list[list[Case]]:
    """What runs together, one after the other."""
    wanted = chosen.section or (MATRIX if chosen.matrix else [])
    groups = [MATRIX[name] for name in wanted] or [LONG]
    named = ([case for case in cases if chosen.client in case.name] for cases in groups)
    return [cases for cases in named if cases]


def main() -> None:
    chosen = options()
    in_matrix = bool(chosen.matrix or chosen.section)
    of_run = (MATRIX_SECONDS, MATRIX_WARM_UP_SECONDS) if in_matrix else (LONG_SECONDS, LONG_WARM_UP_SECONDS)
    timing = Timing(chosen.seconds or of_run[0], chosen.warm_up or of_run[1])
    about = {"seconds": timing.seconds, "warm_up_seconds": timing.warm_up_seconds}
    with measuring("quotas", chosen.output, nice=chosen.nice, **about) as (run, root), ExitStack() as stack:
        products = [PRODUCTS[name] for name in chosen.broker or PRODUCTS]
        trios = [stack.enter_context(running(Trio(product, root / product.name), chosen.nice)) for product in products]
        apart = [[trio] for trio in trios] if in_matrix else [trios]
        for number, cases in enumerate(groups_of(chosen)):
            for side_by_side in apart:
                take(side_by_side, cases, timing, run.record, number)


if __name__ == "__main__":
    main()
