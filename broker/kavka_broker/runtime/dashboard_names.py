"""The names under which other projects' dashboards look for Kafka's figures (`kavka.metrics.names`).

A figure of Apache Kafka has no name in Prometheus: the exporter in front of it gives it one, and Confluent's dashboards
use another exporter's rules than Strimzi's. Most of their names are those that this broker serves anyway. The others
come from the samples that are there already, for those who ask. What a broker without a JVM does not have (`jvm_*`),
what Kubernetes knows (`container_*`) and what is not counted here has no name.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from kavka_broker.core.partition.min_insync_replicas import effective_min_isr
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.runtime.metric_tables.family import PARTITION, Family, Kind
from kavka_broker.runtime.partition_figures import PARTITION_SERIES_MAX, Sample

PARTITION_COST: Final = 6  # of a slice
RUNNING: Final = 3  # of Kafka's BrokerState
STARTING: Final = 1


def same(value: float) -> float:
    return value


def broker_state(ready: float) -> float:
    return RUNNING if ready else STARTING


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a sample, with its labels called otherwise."""

    dashboard: str
    name: str
    source: str
    labels: tuple[str, ...] = ()
    value: Callable[[float], float] = same
    meaning: str = ""  # where it is not the same

    @property
    def help(self) -> str:
        return self.meaning or f"The same as {self.source}."


TOPIC_METRICS: Final = "kafka_server_brokertopicmetrics_"
TOPIC_FIGURES: Final = (
    "bytesin",
    "bytesout",
    "messagesin",
    "replicationbytesin",
    "totalproducerequests",
    "totalfetchrequests",
)
CONFLUENT: Final = "confluent"
STRIMZI: Final = "strimzi"
LISTENER: Final = ("listener",)
LOGIN_FIGURES: Final = (
    "successful_authentication_total",
    "failed_authentication_total",
    "successful_authentication_no_reauth_total",
    "successful_reauthentication_total",
    "failed_reauthentication_total",
)
OF_SOCKETS: Final = "kafka_server_socket_server_metrics_"
CONFLUENT_SOCKETS: Final = "kafka_server_socketservermetrics_"

ALIASES: Final = (
    *(
        Alias(CONFLUENT, f"{TOPIC_METRICS}{what}persec", f"{TOPIC_METRICS}{what}_total", ("topic",))
        for what in TOPIC_FIGURES
    ),
    *(
        Alias(CONFLUENT, f"kafka_server_replicamanager_{what}persec", f"kafka_server_replicamanager_{what}_total")
        for what in ("isrshrinks", "isrexpands")
    ),
    Alias(
        CONFLUENT,
        "kafka_controller_controllerstats_uncleanleaderelectionspersec",
        "kafka_controller_controllerstats_uncleanleaderelections_total",
    ),
    Alias(CONFLUENT, "kafka_network_requestmetrics_requestspersec", "kavka_requests_total", ("request",)),
    Alias(CONFLUENT, f"{CONFLUENT_SOCKETS}connection_count", "kavka_connections", LISTENER),
    *(Alias(CONFLUENT, f"{CONFLUENT_SOCKETS}{figure}", f"{OF_SOCKETS}{figure}", LISTENER) for figure in LOGIN_FIGURES),
    Alias(
        CONFLUENT,
        "kafka_server_kafkaserver_brokerstate",
        "kavka_broker_ready",
        value=broker_state,
        meaning=f"{RUNNING} where kavka_broker_ready is 1, otherwise {STARTING}.",
    ),
    *(
        Alias(dashboard, f"{prefix}expired_connections_killed_count", "kavka_sessions_ended_total", LISTENER)
        for dashboard, prefix in ((CONFLUENT, CONFLUENT_SOCKETS), (STRIMZI, OF_SOCKETS))
    ),
    Alias(STRIMZI, f"{OF_SOCKETS}connection_count", "kavka_connections", LISTENER),
    *(
        Alias(dashboard, name, "kavka_loop_idle_ratio")
        for dashboard, name in (
            (CONFLUENT, "kafka_network_socketserver_networkprocessoravgidlepercent"),
            (CONFLUENT, "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate"),
            (STRIMZI, "kafka_network_socketserver_networkprocessoravgidle_percent"),
            (STRIMZI, "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"),
        )
    ),
    *(
        Alias(dashboard, f"kafka_server_kafkaserver_linux_disk_{theirs}_bytes", f"kavka_disk_{ours}_bytes_total")
        for dashboard in (CONFLUENT, STRIMZI)
        for theirs, ours in (("read", "read"), ("write", "written"))
    ),
)

#: Of each replica here, as far as they are shown; 1 on its leader where the partition is so, otherwise 0.
PARTITION_NAMES: Final = (
    "kafka_cluster_partition_underminisr",
    "kafka_cluster_partition_atminisr",
    "kafka_cluster_partition_underreplicated",
    "kafka_cluster_partition_replicascount",
    "kafka_cluster_partition_insyncreplicascount",
)

DASHBOARD_FAMILIES: Final = (
    *(
        Family(name, Kind.UNTYPED, alias.labels, alias.help)
        for name, alias in {alias.name: alias for alias in ALIASES}.items()
    ),
    *(
        Family(name, Kind.GAUGE, PARTITION, "Of a partition led here, under the name of Kafka's figure; 0 elsewhere.")
        for name in PARTITION_NAMES
    ),
)


def dashboard_samples(
    dashboards: Sequence[str], found: Iterable[Sample], partitions: Sequence[Partition]
) -> Work[list[Sample]]:
    """Return samples under the names of these projects' dashboards, made from those that have been found."""
    if not dashboards:
        return []
    wanted: dict[str, dict[str, Alias]] = {}  # by source and name: two projects may use the same one
    for alias in ALIASES:
        if alias.dashboard in dashboards:
            wanted.setdefault(alias.source, {})[alias.name] = alias
    named, cost = list[Sample](), Cost()
    for source, labels, value in found:
        named += [(alias.name, labels, alias.value(value)) for alias in wanted.get(source, {}).values()]
        if cost.add(1):
            yield
    for partition in islice(partitions, PARTITION_SERIES_MAX):
        named += partition_names(partition)
        if cost.add(PARTITION_COST):
            yield
    return named


def partition_names(partition: Partition) -> list[Sample]:
    """Return what Kafka says of each partition."""
    labels = (partition.topic, str(partition.index))
    values = figures(partition) if partition.is_leader else (0,) * len(PARTITION_NAMES)
    return [(name, labels, value) for name, value in zip(PARTITION_NAMES, values, strict=True)]


def figures(partition: Partition) -> tuple[int, ...]:
    in_sync, replicas = len(partition.state.isr), len(partition.state.replicas)
    spare = in_sync - effective_min_isr(partition.log.config.min_insync_replicas, replicas)
    return int(spare < 0), int(spare == 0), int(in_sync < replicas), replicas, in_sync
