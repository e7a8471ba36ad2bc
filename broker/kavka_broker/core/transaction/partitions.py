"""AddPartitionsToTxn: which partitions a transaction writes to."""

from collections.abc import Collection

from kavka_broker.core.transaction.state import EPOCH_MAX, Place, Standing, Transaction, TransactionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["add_partitions", "verify_partitions"]


def add_partitions(
    transaction: Transaction | None,
    producer: tuple[int, int],
    added: Collection[Place],
    version: int,
    now_ms: int,
) -> Standing | None:
    """The next standing, with these partitions; None where it has them. Raises BrokerError.

    `producer` is an id and an epoch, `version` the client's transaction version.
    """
    if transaction is None:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.is_moving:
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
    standing = transaction.standing
    _check_producer(standing, producer)
    is_ongoing = standing.state is TransactionState.ONGOING
    if is_ongoing and standing.partitions.issuperset(added):
        return None
    return standing.then(
        TransactionState.ONGOING,
        partitions=standing.partitions.union(added),
        started_ms=standing.started_ms if is_ongoing else now_ms,
        updated_ms=now_ms,
        version=version,
    )


def verify_partitions(
    transaction: Transaction | None, producer: tuple[int, int], asked: Collection[Place]
) -> dict[Place, ErrorCode]:
    """Whether each partition is in the transaction. Raises BrokerError.

    A move that is pending does not matter: the partition's leader looks once more before it appends.
    """
    if transaction is None:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    standing = transaction.standing
    _check_producer(standing, producer)
    return {
        place: ErrorCode.NONE if place in standing.partitions else ErrorCode.TRANSACTION_ABORTABLE for place in asked
    }


def _check_producer(standing: Standing, producer: tuple[int, int]) -> None:
    producer_id, epoch = producer
    if producer_id != standing.producer_id:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if epoch != standing.producer_epoch or epoch == EPOCH_MAX:  # the last one fences, and is nobody's
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    if standing.state.is_prepared:
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
