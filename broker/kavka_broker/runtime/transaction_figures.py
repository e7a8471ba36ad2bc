"""The figures of transactions that a broker coordinates."""

from collections.abc import Iterator

from kavka_broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from kavka_broker.core.transaction.state import TransactionState
from kavka_broker.core.transaction.state_counts import Census
from kavka_broker.runtime.partition_figures import Sample

MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
SHOWN = tuple(state for state in TransactionState if state < TransactionState.DEAD)
"""The states that a record has, and that last."""


def transaction_samples(transactions: TransactionCoordinator, now_ms: int) -> Iterator[Sample]:
    census = Census.of(shard.census for shard in transactions.shards())
    for state in SHOWN:
        yield "kavka_transactional_ids", (state.title,), census.states.get(state, 0)
    oldest_ms = 0 if census.oldest_started_ms is None else max(0, now_ms - census.oldest_started_ms)
    yield "kavka_transaction_oldest_seconds", (), oldest_ms / 1000
    for reason, count in transactions.aborted.items():
        yield "kavka_transactions_aborted_total", (reason,), count
    yield "kavka_transaction_late_requests_total", (), transactions.late_requests.refused
    yield f"{MARKERS}_unknowndestinationqueuesize", (), transactions.markers.unknown_destinations
    yield f"{MARKERS}_logappendretryqueuesize", (), sum(shard.incomplete for shard in transactions.shards())
