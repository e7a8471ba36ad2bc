"""Judges a history: every anomaly, and those that break a promise of Kafka."""

from collections.abc import Callable, Iterator
from typing import Final

from tests.histories import orders, records
from tests.histories.anomalies import Anomaly
from tests.histories.atomicity import told_offsets, torn_offsets, torn_transactions
from tests.histories.cycles import cycles
from tests.histories.operations import History
from tests.histories.versions import Versions, versions_of

RULES: Final[tuple[Callable[[Versions], Iterator[Anomaly]], ...]] = (
    records.inconsistent_offsets,
    records.phantoms,
    records.aborted_reads,
    records.dirty_reads,
    records.precommitted_reads,
    records.lost_writes,
    records.duplicates,
    torn_transactions,
    torn_offsets,
    told_offsets,
    cycles,
    orders.polls,
    orders.sends,
)


def anomalies(history: History) -> list[Anomaly]:
    """All anomalies, the worst kinds first."""
    versions = versions_of(history)
    return [anomaly for rule in RULES for anomaly in rule(versions)]


def fatal(history: History) -> list[Anomaly]:
    """Anomalies that break a promise of Kafka."""
    return [anomaly for anomaly in anomalies(history) if anomaly.is_fatal]
