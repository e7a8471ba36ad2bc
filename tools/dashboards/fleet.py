"""Fleet: every cluster on a line, and which of them needs a look."""

from typing import Final

from tools.dashboards.panels import Dashboard, Link, Panel, Query, Row

CONTROLLER: Final = "kafka_controller_kafkacontroller_"
REPLICAS: Final = "kafka_server_replicamanager_"
TOPICS: Final = "kafka_server_brokertopicmetrics_"
FULL: Final = "1 - kavka_log_directory_free_bytes / (kavka_log_directory_size_bytes > 0)"
LAG: Final = 'kavka_group_lag_{unit}{{isolation_level="read_uncommitted"}}'


def rate(metric: str) -> str:
    """The rate of a counter over all nodes of a cluster."""
    return f"sum by (cluster) (rate({metric}[$__rate_interval]))"


def over_time(title: str, help_: str, expression: str, unit: str) -> Panel:
    """A line for each cluster."""
    return Panel(title, help_, (Query(expression, "{{cluster}}"),), unit, width=12)


CLUSTERS: Final = Row(
    "Clusters",
    (
        Panel(
            "Clusters",
            "A line each; its name leads to the cluster's own dashboard.",
            (
                Query(f"max by (cluster) ({CONTROLLER}activebrokercount)", "brokers"),
                Query(f"max by (cluster) ({CONTROLLER}fencedbrokercount)", "fenced"),
                Query(f"max by (cluster) ({CONTROLLER}offlinepartitionscount)", "offline partitions"),
                Query(f"sum by (cluster) ({REPLICAS}underminisrpartitioncount)", "under min.insync.replicas"),
                Query(f"sum by (cluster) ({REPLICAS}underreplicatedpartitions)", "under-replicated"),
                Query(f"max by (cluster) ({CONTROLLER}globalpartitioncount)", "partitions"),
                Query(rate(f"{TOPICS}bytesin_total"), "bytes in", "Bps"),
                Query(rate(f"{TOPICS}bytesout_total"), "bytes out", "Bps"),
                Query(f"max by (cluster) ({LAG.format(unit='seconds')})", "time behind", "s"),
                Query(f"max by (cluster) ({FULL})", "fullest disk", "percentunit"),
                Query(
                    "sum by (cluster) (rate(kavka_client_throttle_seconds_total[$__rate_interval]))", "throttled", "s"
                ),
            ),
            kind="table",
            width=24,
            links=(Link("cluster", "Broker dashboard", "/d/kavka-broker?var-cluster=${__value.raw:queryparam}"),),
        ),
    ),
)
LINES: Final = Row(
    "Over time",
    (
        over_time("Bytes in", "What producers send.", rate(f"{TOPICS}bytesin_total"), "Bps"),
        over_time("Bytes out", "What consumers read.", rate(f"{TOPICS}bytesout_total"), "Bps"),
        over_time(
            "Under-replicated",
            "Partitions with replicas out of sync.",
            f"sum by (cluster) ({REPLICAS}underreplicatedpartitions)",
            "short",
        ),
        over_time(
            "Records behind",
            "Of the group that is furthest behind.",
            f"max by (cluster) ({LAG.format(unit='records')})",
            "short",
        ),
        over_time("Fullest disk", "Of all log directories of a cluster.", f"max by (cluster) ({FULL})", "percentunit"),
        over_time(
            "Loop",
            "How much of the one thread that serves all requests is used, on the busiest node.",
            "max by (cluster) (sum by (cluster, instance) (rate(kavka_loop_cpu_seconds_total[$__rate_interval])))",
            "percentunit",
        ),
    ),
)

FLEET: Final = Dashboard(
    "kavka-fleet",
    "Kavka: fleet",
    "Every cluster that this Prometheus reads.",
    (),
    (CLUSTERS, LINES),
)
