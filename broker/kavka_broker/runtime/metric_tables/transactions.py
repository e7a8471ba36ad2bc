"""Transactions that a broker coordinates."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import Kind, Row

TRANSACTIONS: Final[tuple[Row, ...]] = (
    (
        "kavka_transactional_ids",
        Kind.GAUGE,
        ("state",),
        "Transactional ids that this broker coordinates, by state, as of the last look for overdue transactions.",
    ),
    (
        "kavka_transaction_oldest_seconds",
        Kind.GAUGE,
        (),
        "Age of the oldest open transaction, for which readers of committed records wait; 0 without one.",
    ),
    (
        "kavka_transactions_aborted_total",
        Kind.COUNTER,
        ("reason",),
        "Transactions that the coordinator aborted: too long open (timeout), or its id taken over (fenced).",
    ),
    (
        "kavka_transaction_late_requests_total",
        Kind.COUNTER,
        (),
        "Requests of producers of transaction version 1 that came over a connection which they had given up.",
    ),
    (
        "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize",
        Kind.UNTYPED,
        (),
        "Transactions with markers for partitions whose leaders cannot be reached now.",
    ),
    (
        "kafka_coordinator_transaction_transactionmarkerchannelmanager_logappendretryqueuesize",
        Kind.UNTYPED,
        (),
        "Transactions that have all their markers, and whose last record the log has refused.",
    ),
)
