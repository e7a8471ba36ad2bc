"""What the operator's process counts, and its page of metrics.

Counters are kept as things happen, in any thread; what can be read off the resources and lanes is read when a page is
asked for.
"""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kavka_operator.domain.cluster_view import View
from kavka_operator.loop.observer import LookResult
from kavka_operator.process import metric_table as table
from kavka_operator.process.cluster_threads import ClusterKey, ClusterThreads
from kavka_operator.process.metric_table import Family
from kavka_operator.process.resource_metrics import Standing, standing

BUCKETS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(slots=True, eq=False)
class Figures(Collector):
    """The counters of a process, which prometheus_client keeps, and where the rest is read."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    is_active: bool = False
    listed_at: float = 0.0
    lanes: ClusterThreads | None = None
    documents: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    _turns: Histogram = field(init=False)
    _failures: Counter = field(init=False)
    _writes: Counter = field(init=False)
    _events_omitted: Counter = field(init=False)

    def __post_init__(self) -> None:
        turns, failures, writes = table.TURNS, table.FAILURES, table.WRITES
        self._turns = Histogram(turns.name, turns.help, turns.labels, registry=self.registry, buckets=BUCKETS)
        self._failures = Counter(failures.name, failures.help, failures.labels, registry=self.registry)
        self._writes = Counter(writes.name, writes.help, writes.labels, registry=self.registry)
        omitted = table.EVENTS_OMITTED
        self._events_omitted = Counter(omitted.name, omitted.help, omitted.labels, registry=self.registry)
        ProcessCollector(registry=self.registry)
        self.registry.register(self)

    def stand_back(self) -> None:
        """Show nothing of clusters: another process may act."""
        self.is_active, self.listed_at, self.lanes, self.documents = False, 0.0, None, tuple

    def view_of(self, cluster: ClusterKey) -> View | None:
        """The nodes of a cluster as they were last seen; None where this process does not look after it."""
        return self.lanes.view_of(cluster) if self.lanes is not None else None

    # --- what happens -------------------------------------------------------------------------------------------

    def looked(self, cluster: ClusterKey, seconds: float, result: LookResult) -> None:
        """Count a look."""
        self._turns.labels("look").observe(seconds)
        if result.error is not None or result.fault is not None:
            self.failed(cluster)

    def acted(self, seconds: float) -> None:
        """Count what followed from a look."""
        self._turns.labels("act").observe(seconds)

    def failed(self, cluster: ClusterKey) -> None:
        """Count a turn that came to nothing."""
        self._failures.labels(*cluster).inc()

    def ended(self, cluster: ClusterKey) -> None:
        """Forget a cluster that is looked after no more."""
        if cluster in self._failures._metrics:
            self._failures.remove(*cluster)

    def wrote(self, to: str, what: str, times: int = 1) -> None:
        """Count writes."""
        self._writes.labels(to, what).inc(times)

    def left_out(self) -> None:
        """Count an Event that is not made."""
        self._events_omitted.inc()

    # --- the page -----------------------------------------------------------------------------------------------

    def page(self) -> bytes:
        """The page in Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Figures that are read when the page is asked for."""
        python = platform.python_version()
        yield _gauge(table.BUILD, {(version("kavka-operator"), python): 1.0})
        yield _gauge(table.ACTIVE, {(): float(self.is_active)})
        yield _gauge(table.LISTED, {(): self.listed_at})
        busy = self.lanes.busy_seconds() if self.lanes is not None else {}
        yield _gauge(table.LANES, {(): float(self.lanes.count if self.lanes is not None else 0)})
        yield _gauge(table.WAITING, {(): float(self.lanes.waiting if self.lanes is not None else 0)})
        yield _gauge(table.LONGEST, {(): max(busy.values(), default=0.0)})
        yield from _of(standing(self.documents()))

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: what is collected is not asked for while the registry is made."""
        return iter(())


def _of(now: Standing) -> Iterator[GaugeMetricFamily]:
    yield _gauge(table.RESOURCES, {key: float(count) for key, count in now.ready.items()})
    found = {(item.kind, item.namespace, item.name, item.reason): item.since for item in now.not_ready}
    yield _gauge(table.NOT_READY, found)
    yield _gauge(table.OMITTED, {(): float(now.omitted)})
    yield _gauge(table.ROLL_DONE, {(roll.namespace, roll.name): float(roll.done) for roll in now.rolls})
    yield _gauge(table.ROLL_NODES, {(roll.namespace, roll.name): float(roll.nodes) for roll in now.rolls})
    blocked = {(roll.namespace, roll.name): since for roll in now.rolls if (since := roll.blocked_since) is not None}
    yield _gauge(table.ROLL_BLOCKED, blocked)


def _gauge(family: Family, values: Mapping[Any, float]) -> GaugeMetricFamily:
    """A gauge with a series for each key of `values`, which are tuples of the family's labels."""
    gauge = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in values.items():
        gauge.add_metric(labels, value)
    return gauge
