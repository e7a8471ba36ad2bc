"""Every metric of the operator: name, kind, labels and what it means. The reference page is made from this table.

Names follow Prometheus' rules: base units, counters that can be summed, moments in seconds since 1970.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Prometheus' types of metrics."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with all its series."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str

    @property
    def samples(self) -> tuple[str, ...]:
        """The names of its samples."""
        endings = ("_bucket", "_sum", "_count") if self.kind is Kind.HISTOGRAM else ("",)
        return tuple(self.name + ending for ending in endings)


CLUSTER = ("namespace", "name")
RESOURCE = ("kind", *CLUSTER)

BUILD = Family(
    "kavka_operator_build_info", Kind.GAUGE, ("version", "python"), "Always 1; the labels say what is running."
)
ACTIVE = Family("kavka_operator_active", Kind.GAUGE, (), "1 when this process acts; 0 while another holds the lease.")
LISTED = Family(
    "kavka_operator_listed_timestamp_seconds",
    Kind.GAUGE,
    (),
    "When all resources were last listed; 0 before the first.",
)
TURNS = Family(
    "kavka_operator_turn_seconds",
    Kind.HISTOGRAM,
    ("step",),
    "Time of a turn of a cluster's loop: look (asking Kafka, altering topics and quotas) and act (statuses and nodes).",
)
FAILURES = Family(
    "kavka_operator_look_failures_total",
    Kind.COUNTER,
    CLUSTER,
    "Looks at a cluster that failed or that it did not answer.",
)
LANES = Family("kavka_operator_lanes", Kind.GAUGE, (), "Clusters that are looked after, each by a thread.")
WAITING = Family(
    "kavka_operator_clusters_waiting", Kind.GAUGE, (), "Clusters that wait for a lane; they are not looked at."
)
LONGEST = Family(
    "kavka_operator_turn_longest_seconds", Kind.GAUGE, (), "Age of the turn under way that began first; 0 without one."
)
WRITES = Family(
    "kavka_operator_writes_total",
    Kind.COUNTER,
    ("to", "what"),
    "Writes to Kubernetes, by kind, and to Kafka, by action; none at rest.",
)
EVENTS_OMITTED = Family(
    "kavka_operator_events_omitted_total",
    Kind.COUNTER,
    (),
    "Events of resources that were not made: too many at once, or refused by the API server.",
)
RESOURCES = Family("kavka_operator_resources", Kind.GAUGE, ("kind", "ready"), "Resources by the status of their Ready.")
NOT_READY = Family(
    "kavka_operator_not_ready_timestamp_seconds",
    Kind.GAUGE,
    (*RESOURCE, "reason"),
    "Since when a resource is not Ready, and why.",
)
OMITTED = Family(
    "kavka_operator_series_omitted", Kind.GAUGE, (), "Resources that are not Ready beyond the bound, the youngest."
)
ROLL_DONE = Family(
    "kavka_operator_roll_nodes_done", Kind.GAUGE, CLUSTER, "Nodes that the roll under way has restarted."
)
ROLL_NODES = Family("kavka_operator_roll_nodes", Kind.GAUGE, CLUSTER, "Nodes that the roll under way restarts in all.")
ROLL_BLOCKED = Family(
    "kavka_operator_roll_blocked_timestamp_seconds",
    Kind.GAUGE,
    CLUSTER,
    "Since when the roll under way waits; no series while it does not.",
)

OPERATOR_FAMILIES = (
    BUILD, ACTIVE, LISTED, TURNS, FAILURES, LANES, WAITING, LONGEST, WRITES, EVENTS_OMITTED,
    RESOURCES, NOT_READY, OMITTED, ROLL_DONE, ROLL_NODES, ROLL_BLOCKED,
)  # fmt: skip
