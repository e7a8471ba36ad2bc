"""Metrics that clients push (KIP-714)."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import SAID, Kind, Row

TELEMETRY: Final[tuple[Row, ...]] = (
    (
        "kavka_client_telemetry_level",
        Kind.GAUGE,
        SAID,
        "Value of a metric that a client has pushed: the largest of its nodes, partitions and instances.",
    ),
    (
        "kavka_client_telemetry_flow_total",
        Kind.COUNTER,
        SAID,
        "Sum of a metric that a client has pushed and that only grows, over its nodes, partitions and instances.",
    ),
    ("kavka_telemetry_instances", Kind.GAUGE, (), "Client instances that have asked or pushed lately."),
    (
        "kavka_telemetry_instances_displaced_total",
        Kind.COUNTER,
        (),
        "Client instances that were forgotten for the sake of others; each begins again.",
    ),
    (
        "kavka_telemetry_asks_total",
        Kind.COUNTER,
        ("result",),
        "Clients that asked what to push, by the error code of the answer.",
    ),
    (
        "kavka_telemetry_pushes_total",
        Kind.COUNTER,
        ("result",),
        "Pushes of clients, by the error code of the answer.",
    ),
    (
        "kavka_telemetry_values_omitted_total",
        Kind.COUNTER,
        (),
        "Pushed values that are not shown: beyond the bound on series, or of a kind that is not shown.",
    ),
    (
        "kavka_telemetry_forwarded_total",
        Kind.COUNTER,
        ("result",),
        "Pushes that were sent to kavka.telemetry.otlp.endpoint, or dropped on the way.",
    ),
    ("kafka_server_client_metrics_instance_count", Kind.UNTYPED, (), "The same as kavka_telemetry_instances."),
    (
        "kafka_server_client_metrics_plugin_export_count",
        Kind.UNTYPED,
        (),
        "Pushes of all clients that were sent to kavka.telemetry.otlp.endpoint, which stands for Kafka's plugin.",
    ),
    (
        "kafka_server_client_metrics_plugin_error_count",
        Kind.UNTYPED,
        (),
        "Pushes of all clients that were not sent there: it is away, or too slow, or the push too large.",
    ),
)
