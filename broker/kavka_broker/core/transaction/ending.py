"""EndTxn: a transaction is decided, and complete when all its partitions have the marker.

Up to transaction version 1 the epoch stays: state and epoch say together whether a producer asks again. From version 2
on the decision raises the epoch, so a request that comes late, or twice, never ends a later transaction (KIP-890).
"""

from dataclasses import dataclass
from enum import Enum, auto

from kavka_broker.core.transaction.state import (
    BUMPS_FROM,
    EPOCH_EXHAUSTED,
    EPOCH_MAX,
    NO_PRODUCER,
    Standing,
    Transaction,
    TransactionState,
)
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["End", "complete", "end", "told"]


@dataclass(frozen=True, slots=True)
class End:
    """What a producer asks for. `version` is its transaction version."""

    producer_id: int
    producer_epoch: int
    commits: bool
    version: int


class Age(Enum):
    """How a request of version 2 stands to the epoch that is stored."""

    CURRENT = auto()
    RETRY = auto()  # the epoch has been raised since: by this very request, when it came before


def end(transaction: Transaction | None, asked: End, fresh_id: int, now_ms: int) -> Standing | None:
    """The next standing, PREPARE_COMMIT or PREPARE_ABORT; None where all that is done. Raises BrokerError."""
    if transaction is None:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if asked.version < BUMPS_FROM:
        return _end_by_state(transaction, asked, now_ms)
    standing = transaction.standing
    if transaction.is_moving:
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
    age = _age(standing, asked)
    if not _decides(standing.state, asked.commits, age):
        return None
    assert not standing.is_exhausted or fresh_id != NO_PRODUCER, standing
    return standing.then(
        TransactionState.PREPARE_COMMIT if asked.commits else TransactionState.PREPARE_ABORT,
        producer_epoch=standing.producer_epoch + 1,
        last_epoch=standing.producer_epoch,
        next_producer_id=fresh_id if standing.is_exhausted else NO_PRODUCER,
        started_ms=standing.started_ms if standing.state is TransactionState.ONGOING else now_ms,
        updated_ms=now_ms,
        version=asked.version,
    )


def _check_epoch_is_given(asked: End) -> None:
    if asked.producer_epoch == EPOCH_MAX:
        raise BrokerError(ErrorCode.PRODUCER_FENCED, "an epoch that no producer is given")


def _age(standing: Standing, asked: End) -> Age:
    """Raises BrokerError for a request of another producer."""
    is_overflow = (
        standing.previous_producer_id == asked.producer_id
        and asked.producer_epoch == EPOCH_EXHAUSTED
        and standing.producer_epoch == 0
        and standing.state.is_resting
        and standing.state is not TransactionState.EMPTY
    )
    if is_overflow:
        return Age.RETRY
    if asked.producer_id != standing.producer_id:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    _check_epoch_is_given(asked)
    # The end of a transaction of version 1 raises no epoch: the one before is of a producer that was fenced.
    is_retry = standing.producer_epoch == asked.producer_epoch + 1 and standing.version >= BUMPS_FROM
    is_current = standing.producer_epoch == asked.producer_epoch
    is_undecided = standing.state in (TransactionState.ONGOING, TransactionState.EMPTY)
    if not is_current and (is_undecided or not is_retry):
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    return Age.RETRY if is_retry else Age.CURRENT


def _decides(state: TransactionState, commits: bool, age: Age) -> bool:
    """Whether the request decides a transaction; False where it has been decided so. Raises BrokerError."""
    match state, commits, age:
        case TransactionState.ONGOING, _, _:
            return True
        case (TransactionState.COMPLETE_COMMIT, True, Age.RETRY) | (TransactionState.COMPLETE_ABORT, False, Age.RETRY):
            return False
        case (
            (TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT | TransactionState.EMPTY),
            False,
            Age.CURRENT,
        ):
            return True  # an abort of what has not begun: the epoch rises, so that nothing can come late
    raise BrokerError(ErrorCode.INVALID_TXN_STATE, f"the transaction is in state {state.title}")


def _end_by_state(transaction: Transaction, asked: End, now_ms: int) -> Standing | None:
    """`end` up to transaction version 1."""
    standing = transaction.standing
    if asked.producer_id != standing.producer_id:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    _check_epoch_is_given(asked)
    if asked.producer_epoch != standing.producer_epoch:
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    if transaction.is_moving:
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
    match standing.state, asked.commits:
        case TransactionState.ONGOING, _:
            prepared = TransactionState.PREPARE_COMMIT if asked.commits else TransactionState.PREPARE_ABORT
            return standing.then(prepared, updated_ms=now_ms, version=0, next_producer_id=NO_PRODUCER)
        case (TransactionState.COMPLETE_COMMIT, True) | (TransactionState.COMPLETE_ABORT, False):
            return None
    raise BrokerError(ErrorCode.INVALID_TXN_STATE, f"the transaction is in state {standing.state.title}")


def told(standing: Standing) -> tuple[int, int]:
    """The id and epoch of the producer's next transaction, which the answer to EndTxn tells it."""
    if standing.state.is_prepared and standing.next_producer_id != NO_PRODUCER:
        return standing.next_producer_id, 0
    return standing.producer_id, standing.producer_epoch


def complete(standing: Standing, now_ms: int) -> Standing:
    """The standing of a decided transaction all of whose partitions have their markers."""
    assert standing.state.is_prepared, standing
    commits = standing.state is TransactionState.PREPARE_COMMIT
    producer_id, epoch = told(standing)
    return standing.then(
        TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT,
        producer_id=producer_id,
        producer_epoch=epoch,
        next_producer_id=NO_PRODUCER,
        partitions=frozenset(),
        updated_ms=now_ms,
    )
