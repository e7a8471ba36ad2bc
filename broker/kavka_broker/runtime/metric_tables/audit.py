"""The audit trail."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import Kind, Row

AUDIT: Final[tuple[Row, ...]] = (
    (
        "kavka_audit_events_total",
        Kind.COUNTER,
        ("result",),
        "Events of the audit trail that its topic has taken, or that were dropped for lack of room.",
    ),
    ("kavka_audit_events_waiting", Kind.GAUGE, (), "Events of the audit trail that wait to be written."),
    (
        "kavka_audit_told_total",
        Kind.COUNTER,
        ("kind",),
        "How often what happened that the audit trail tells, as its events count it.",
    ),
    (
        "kavka_audit_refusal_events_total",
        Kind.COUNTER,
        ("principal",),
        "Events of the audit trail about refused requests, by principal; beyond 100 principals together.",
    ),
    (
        "kavka_audit_buffer_usage_ratio",
        Kind.GAUGE,
        (),
        "How much of the room for unwritten events is used; at 1 events are dropped, or clients refused.",
    ),
    (
        "kavka_audit_last_written_timestamp_seconds",
        Kind.GAUGE,
        (),
        "When the topic of the audit trail took something last; at least once a minute.",
    ),
    ("kavka_audit_write_failures_total", Kind.COUNTER, (), "Writes that the topic of the audit trail has not taken."),
    (
        "kavka_audit_refusing",
        Kind.GAUGE,
        (),
        "Whether clients are refused as the audit trail has no room (kavka.audit.failure.policy=reject).",
    ),
    (
        "kavka_audit_refused_total",
        Kind.COUNTER,
        ("kind",),
        "Requests refused as the audit trail has no room, by what they ask for.",
    ),
)
