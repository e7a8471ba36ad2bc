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
)
