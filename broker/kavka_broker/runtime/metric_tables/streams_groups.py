"""Streams groups (KIP-1071) that a broker coordinates, by the names of Apache Kafka's metrics."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import Kind, Row

STREAMS_GROUPS: Final[tuple[Row, ...]] = (
    (
        "kafka_server_group_coordinator_metrics_streams_group_count",
        Kind.UNTYPED,
        ("state",),
        "Streams groups that this broker coordinates, by state.",
    ),
    (
        "kafka_server_group_coordinator_metrics_streams_group_rebalance_count",
        Kind.UNTYPED,
        (),
        "Epochs of streams groups that began here.",
    ),
)
