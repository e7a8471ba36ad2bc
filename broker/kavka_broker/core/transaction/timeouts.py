"""What time does to transactional ids: open transactions are aborted, and ids that nobody uses are forgotten."""

from kavka_broker.core.transaction.state import NEVER_MS, Standing, Transaction, TransactionState

__all__ = ["is_expired", "is_overdue", "kill", "note_ahead"]


def note_ahead(transaction: Transaction, now_ms: int) -> None:
    """Note that the transaction has begun later than now, by this broker's clock: another clock was ahead, or this one
    was set back. From here on its time counts from now; otherwise it would stay open for as long as the two differ.
    """
    began_ms = transaction.standing.started_ms if transaction.began_ms is None else transaction.began_ms
    if began_ms > now_ms:
        transaction.began_ms = now_ms


def is_overdue(transaction: Transaction, now_ms: int) -> bool:
    """Whether the transaction has been open for longer than its producer's timeout."""
    standing = transaction.standing
    began_ms = standing.started_ms if transaction.began_ms is None else transaction.began_ms
    return (
        standing.state is TransactionState.ONGOING
        and transaction.pending is None
        and standing.timeout_ms != NEVER_MS
        and began_ms + standing.timeout_ms < now_ms
    )


def is_expired(transaction: Transaction, expiration_ms: int, now_ms: int) -> bool:
    """Whether nothing has become of the id for so long that it is forgotten."""
    standing = transaction.standing
    return standing.state.is_resting and transaction.pending is None and standing.updated_ms <= now_ms - expiration_ms


def kill(standing: Standing) -> Standing:
    """The standing of an id that is being forgotten: no record says so, a tombstone does."""
    return standing.then(TransactionState.DEAD, partitions=frozenset())
