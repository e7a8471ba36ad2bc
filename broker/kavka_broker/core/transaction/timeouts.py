"""What time does to transactional ids: open transactions are aborted, and ids that nobody uses are forgotten."""

from kavka_broker.core.transaction.state import NEVER_MS, Standing, Transaction, TransactionState

__all__ = ["is_expired", "is_overdue", "kill"]


def is_overdue(transaction: Transaction, now_ms: int) -> bool:
    """Whether the transaction has been open for longer than its producer's timeout."""
    standing = transaction.standing
    return (
        standing.state is TransactionState.ONGOING
        and transaction.pending is None
        and standing.timeout_ms != NEVER_MS
        and standing.started_ms + standing.timeout_ms < now_ms
    )


def is_expired(transaction: Transaction, expiration_ms: int, now_ms: int) -> bool:
    """Whether nothing has become of the id for so long that it is forgotten."""
    standing = transaction.standing
    return standing.state.is_resting and transaction.pending is None and standing.updated_ms <= now_ms - expiration_ms


def kill(standing: Standing) -> Standing:
    """The standing of an id that is being forgotten: no record says so, a tombstone does."""
    return standing.then(TransactionState.DEAD, partitions=frozenset())
