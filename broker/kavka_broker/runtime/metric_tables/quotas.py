"""Configured quotas, and the figures of Kafka's own names for those that count."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import CLIENT, ENTITY, QUOTA, Kind, Row

QUOTAS: Final[tuple[Row, ...]] = (
    ("kavka_quota_limit", Kind.GAUGE, ENTITY, "The limit of a configured quota on this broker, in its key's unit."),
    (
        "kavka_quota_usage",
        Kind.GAUGE,
        ENTITY,
        "What the client, the address or the partition that uses most of this quota uses, in the unit of the limit.",
    ),
    ("kavka_quota_shares", Kind.GAUGE, ENTITY, "Allowances of this quota that were drawn on within the hour."),
    (
        "kavka_quota_throttled_seconds_total",
        Kind.COUNTER,
        ENTITY,
        "Time in which this quota held at least one connection back.",
    ),
    ("kavka_quota_throttled_connections", Kind.GAUGE, ENTITY, "Connections that this quota holds back, now."),
    (
        "kavka_quota_observed_limit",
        Kind.GAUGE,
        ENTITY,
        "A limit that is only observed, on this broker, in its key's unit.",
    ),
    (
        "kavka_quota_observed_usage",
        Kind.GAUGE,
        ENTITY,
        "What the client that uses most of it would use of an observed limit.",
    ),
    (
        "kavka_quota_observed_throttled_seconds_total",
        Kind.COUNTER,
        ENTITY,
        "Time in which an observed limit would have held somebody back.",
    ),
    (
        "kavka_client_demand_bytes_per_second",
        Kind.GAUGE,
        QUOTA,
        "What a client under a byte quota would use without it: its rate over the share of time it was not held.",
    ),
    ("kavka_quota_shadowed", Kind.GAUGE, ENTITY, "1 where other quotas win for all of its clients."),
    ("kafka_server_produce_byte_rate", Kind.GAUGE, CLIENT, "Bytes a second as the produce quota measures them."),
    ("kafka_server_fetch_byte_rate", Kind.GAUGE, CLIENT, "Bytes a second as the fetch quota measures them."),
    (
        "kafka_server_produce_throttle_time",
        Kind.GAUGE,
        CLIENT,
        "Average throttle_time_ms of throttled produce requests.",
    ),
    (
        "kafka_server_fetch_throttle_time",
        Kind.GAUGE,
        CLIENT,
        "Average throttle_time_ms of throttled fetch requests.",
    ),
    (
        "kafka_server_request_request_time",
        Kind.GAUGE,
        CLIENT,
        "Percentage of the loop that clients under a request quota use, as the quota measures it.",
    ),
    ("kafka_server_request_throttle_time", Kind.GAUGE, CLIENT, "Average throttle_time_ms under a request quota."),
    (
        "kafka_server_request_exempt_request_time",
        Kind.GAUGE,
        (),
        "Percentage of the loop that requests use which count against no quota.",
    ),
    (
        "kafka_server_controllermutation_mutation_rate",
        Kind.GAUGE,
        CLIENT,
        "Partitions a second that clients under a quota create and delete; on the active controller.",
    ),
    (
        "kafka_server_controllermutation_tokens",
        Kind.GAUGE,
        CLIENT,
        "Partitions that may be created or deleted at once; below 0 the quota is used up.",
    ),
    (
        "kafka_server_controllermutation_throttle_time",
        Kind.GAUGE,
        CLIENT,
        "Average throttle_time_ms of requests that created or deleted too much.",
    ),
    *(
        (
            f"kafka_server_{kind}_queue_size",
            Kind.GAUGE,
            (),
            f"Connections that quotas of the type {quota_type} hold back, now.",
        )
        for kind, quota_type in (
            ("produce", "produce"),
            ("fetch", "fetch"),
            ("request", "request"),
            ("controllermutation", "controller_mutation"),
        )
    ),
    *(
        (
            f"kafka_server_{kind}replication_byte_rate",
            Kind.GAUGE,
            (),
            f"Bytes a second of throttled replication, as {what} measures them.",
        )
        for kind, what in (
            ("leader", "leader.replication.throttled.rate"),
            ("follower", "follower.replication.throttled.rate"),
            ("alterlogdirs", "replica.alter.log.dirs.io.max.bytes.per.second"),
        )
    ),
)
