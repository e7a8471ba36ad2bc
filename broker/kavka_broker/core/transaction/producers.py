"""InitProducerId: a producer takes a transactional id over, and fences whoever had it before."""

from dataclasses import dataclass

from kavka_broker.core.transaction.settings import TransactionSettings
from kavka_broker.core.transaction.state import (
    BUMPS_FROM,
    EPOCH_EXHAUSTED,
    EPOCH_MAX,
    NEVER_MS,
    NO_EPOCH,
    NO_PRODUCER,
    NO_TIME_MS,
    Standing,
    Transaction,
    TransactionState,
)
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["Init", "fence", "initialize", "needs_producer_id", "timeout_of"]


@dataclass(frozen=True, slots=True)
class Init:
    """What a producer asks for. `expected` is the id and epoch with which it goes on after an error (KIP-360).
    `is_two_phase`: another system ends its transactions (KIP-939). `keeps_prepared`: the open one is to stay.
    """

    timeout_ms: int
    expected: tuple[int, int] | None = None
    is_two_phase: bool = False
    keeps_prepared: bool = False


def timeout_of(init: Init, settings: TransactionSettings) -> int:
    """The timeout in ms of the producer's transactions. Raises BrokerError for what may not be asked for."""
    if init.is_two_phase and not settings.serves_two_phase_commit:
        raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transaction.two.phase.commit.enable is off")
    if init.keeps_prepared:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, "no transaction is kept for its next producer")
    if init.is_two_phase:
        return NEVER_MS
    if not 0 < init.timeout_ms <= settings.timeout_ms_max:
        raise BrokerError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    return init.timeout_ms


def needs_producer_id(transaction: Transaction | None) -> bool:
    """Whether a move of the id may take a producer id that nobody has had."""
    return transaction is None or transaction.standing.is_exhausted


def initialize(transaction: Transaction, init: Init, fresh_id: int, version: int, now_ms: int) -> Standing:
    """The next standing: EMPTY with an epoch for the producer; PREPARE_ABORT where a transaction has to end before.

    `version` is the cluster's transaction version. Raises BrokerError.
    """
    standing = transaction.standing
    if transaction.is_moving:
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if init.expected is not None and not _may_go_on(standing, *init.expected):
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    if standing.state is TransactionState.ONGOING:
        return fence(standing, fresh_id, version, now_ms)
    assert standing.state.is_resting, standing
    producer_id, epoch, last_epoch = _next_epoch(standing, init, fresh_id)
    return standing.then(
        TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=init.timeout_ms,
        partitions=frozenset(),
        started_ms=NO_TIME_MS,
        updated_ms=now_ms,
    )


def _may_go_on(standing: Standing, producer_id: int, epoch: int) -> bool:
    if standing.producer_epoch == NO_EPOCH or producer_id == standing.producer_id:
        return True
    # The answer that told the producer of its new id may be lost.
    return producer_id == standing.previous_producer_id and epoch >= EPOCH_EXHAUSTED


def _next_epoch(standing: Standing, init: Init, fresh_id: int) -> tuple[int, int, int]:
    """Producer id, epoch, and last epoch. Raises BrokerError."""
    expected_epoch = None if init.expected is None else init.expected[1]
    current = standing.producer_epoch
    if expected_epoch is not None and current not in (NO_EPOCH, expected_epoch):
        if expected_epoch != standing.last_epoch:
            raise BrokerError(ErrorCode.PRODUCER_FENCED)
        return standing.producer_id, current, standing.last_epoch  # asked again: the answer is the same
    last_epoch = NO_EPOCH if expected_epoch is None else current
    if standing.is_exhausted:
        assert fresh_id != NO_PRODUCER, standing
        return fresh_id, 0, last_epoch
    return standing.producer_id, current + 1, last_epoch


def fence(standing: Standing, fresh_id: int, version: int, now_ms: int) -> Standing:
    """The abort of a transaction whose producer must not go on: it is another's, or has taken too long.

    From transaction version 2 on every end of a transaction raises the epoch, so that fences as well. Where that uses
    the last epoch up, the next transaction has another producer id.
    """
    assert standing.state is TransactionState.ONGOING, standing
    bumps = version >= BUMPS_FROM
    is_exhausted = bumps and standing.is_exhausted
    assert not is_exhausted or fresh_id != NO_PRODUCER, standing
    return standing.then(
        TransactionState.PREPARE_ABORT,
        producer_epoch=min(standing.producer_epoch + 1, EPOCH_MAX),
        last_epoch=standing.producer_epoch if bumps else NO_EPOCH,
        next_producer_id=fresh_id if is_exhausted else NO_PRODUCER,
        updated_ms=now_ms,
        version=version if bumps else 0,
    )
