"""What was measured, as plain data: one measure is one repetition of one case on one broker."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench.repetitions import Spread, lead


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a measure.

    `scale` brings it from its stored unit to the one that is printed. One that is `derived` says the same as another
    in other words: it is shown, but has no lead of its own.
    """

    name: str
    title: str
    more_is_better: bool
    scale: float = 1.0
    derived: bool = False


RATE = Metric("records_per_second", "k records/s", more_is_better=True, scale=1e-3)
THROUGHPUT = Metric("megabytes_per_second", "MB/s", more_is_better=True, derived=True)
CPU_PER_GB = Metric("cpu_seconds_per_gb", "broker CPU s/GB", more_is_better=False)
P50 = Metric("p50_ms", "p50 ms", more_is_better=False)
P99 = Metric("p99_ms", "p99 ms", more_is_better=False)
P999 = Metric("p999_ms", "p99.9 ms", more_is_better=False)
CPU_PER_OPERATION = Metric("cpu_microseconds_per_operation", "broker CPU us each", more_is_better=False)
TRANSACTIONS = Metric("transactions_per_second", "transactions/s", more_is_better=True)
COMMIT_P50 = Metric("commit_p50_ms", "commit p50 ms", more_is_better=False)
COMMIT_P99 = Metric("commit_p99_ms", "commit p99 ms", more_is_better=False)
REQUESTS = Metric("requests_per_second", "k requests/s", more_is_better=True, scale=1e-3)
SHARE = Metric("share_of_plain", "of plain", more_is_better=True, derived=True)
OF_LIMIT = Metric("of_limit", "of the limit, whole run", more_is_better=False, derived=True)
OF_LIMIT_LATER = Metric("of_limit_later", "after warm-up", more_is_better=False, derived=True)
BURST = Metric("burst_seconds", "seconds' worth ahead", more_is_better=False, derived=True)
STALL = Metric("stall_seconds", "longest stall s", more_is_better=False, derived=True)
SPREAD = Metric("spread", "least : most connection", more_is_better=True, derived=True)
TOLD = Metric("told_seconds", "s told to wait", more_is_better=False, derived=True)
HELD = Metric("held_share", "held, share", more_is_better=False, derived=True)
IDLE_CORES = Metric("idle_cores", "cores, idle", more_is_better=False, derived=True)
HELD_CORES = Metric("held_cores", "cores, held", more_is_better=False)
ANSWERED = Metric("answered", "thousands answered", more_is_better=True, scale=1e-3, derived=True)
GROWN = Metric("grown_mb", "MB more", more_is_better=False)
FIRST_P99 = Metric("first_p99_ms", "p99 ms of the first", more_is_better=False, derived=True)
LAST_P99 = Metric("last_p99_ms", "p99 ms of the last", more_is_better=False)
PRODUCER_P50 = Metric("produce_p50_ms", "produce p50 ms", more_is_better=False)
PRODUCER_P99 = Metric("produce_p99_ms", "produce p99 ms", more_is_better=False)
CONSUMER_P50 = Metric("consume_p50_ms", "consume p50 ms", more_is_better=False)
CONSUMER_P99 = Metric("consume_p99_ms", "consume p99 ms", more_is_better=False)
REBALANCE = Metric("rebalance_seconds", "s until it is over", more_is_better=False)
REBALANCE_CPU = Metric("broker_cpu_seconds", "broker CPU s", more_is_better=False)
MOVED = Metric("partitions_moved", "partitions taken away", more_is_better=False)
EPOCHS = Metric("epochs_entered", "epochs", more_is_better=False, derived=True)
HEARTBEATS = Metric("heartbeats", "heartbeats", more_is_better=False, derived=True)
COST = Metric("cost", "", more_is_better=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """One repetition of a case of a section on a broker: its figures, and how busy others kept the machine."""

    section: str
    case: str
    broker: str
    repetition: int
    figures: Mapping[str, float]
    others_cores: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """A case and a metric on both brokers. `lead` above 1 means that Kavka is ahead, whichever way is better."""

    case: str
    metric: Metric
    kavka: Spread | None
    kafka: Spread | None

    @property
    def lead(self) -> float | None:
        if self.kavka is None or self.kafka is None or self.metric.derived:
            return None
        return lead(self.kavka.median, self.kafka.median, more_is_better=self.metric.more_is_better)


def cases(measures: Iterable[Measure], section: str) -> list[str]:
    """The cases of a section, in the order they were first measured."""
    return list(dict.fromkeys(measure.case for measure in measures if measure.section == section))


def compare(measures: Iterable[Measure], section: str, case: str, metric: Metric) -> Comparison:
    """What both brokers reached in a case, over its repetitions."""
    values: dict[str, list[float]] = {}
    for measure in measures:
        if (measure.section, measure.case) == (section, case) and metric.name in measure.figures:
            values.setdefault(measure.broker, []).append(measure.figures[metric.name] * metric.scale)
    found = {broker: Spread.of(seen) for broker, seen in values.items()}
    return Comparison(case, metric, found.get("kavka"), found.get("kafka"))
