"""Clients and what their quotas make of them."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import CLIENT, QUOTA, Kind, Row

CLIENTS: Final[tuple[Row, ...]] = (
    ("kavka_client_bytes_total", Kind.COUNTER, QUOTA, "Bytes that count against a byte quota, or would."),
    (
        "kavka_client_throttle_seconds_total",
        Kind.COUNTER,
        QUOTA,
        "Time for which connections were held back, each for itself.",
    ),
    ("kavka_client_throttled_requests_total", Kind.COUNTER, QUOTA, "Requests whose client was told to wait."),
    (
        "kavka_client_quota_limit_bytes_per_second",
        Kind.GAUGE,
        (*QUOTA, "level", "source"),
        "The limit that applies on this broker, its level (1 to 8; 0: a callback's) and its entity.",
    ),
    (
        "kavka_quota_callback_failures_total",
        Kind.COUNTER,
        (),
        "Calls of the quota callback class that raised, or returned what is no answer.",
    ),
    (
        "kavka_quota_callback_waiting",
        Kind.GAUGE,
        (),
        "Clients for which the quota callback class is yet to answer.",
    ),
    (
        "kavka_client_loop_seconds_total",
        Kind.COUNTER,
        CLIENT,
        "Time for which requests had the loop: what request_percentage limits, 100 being all of it.",
    ),
    (
        "kavka_client_quota_limit_loop_ratio",
        Kind.GAUGE,
        (*CLIENT, "level", "source"),
        "request_percentage as a part of the loop (1 is 100), its level (1 to 8) and the entity that it is set on.",
    ),
    (
        "kavka_exempt_loop_seconds_total",
        Kind.COUNTER,
        (),
        "Time for which requests had the loop that count against no quota: of other nodes, and with acks=0.",
    ),
    (
        "kavka_login_loop_seconds_total",
        Kind.COUNTER,
        (),
        "Time for which requests had the loop that came before a login: it counts for no client and against no quota.",
    ),
    (
        "kavka_client_mutations_total",
        Kind.COUNTER,
        CLIENT,
        "Partitions that clients have created and deleted, as far as this node has decided it.",
    ),
    (
        "kavka_client_quota_limit_mutations_per_second",
        Kind.GAUGE,
        (*CLIENT, "level", "source"),
        "The limit of partitions a second, its level (1 to 8) and the entity that it is set on.",
    ),
    (
        "kavka_client_label_overflow_total",
        Kind.COUNTER,
        ("quota_type",),
        "How often a client got no series of its own and was counted under __other__.",
    ),
    (
        "kavka_throttle_duration_seconds",
        Kind.HISTOGRAM,
        ("quota_type",),
        "throttle_time_ms of throttled requests: what they were told to wait.",
    ),
)
