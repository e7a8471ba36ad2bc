"""AddPartitionsToTxn: what is added, and what is only verified."""

import pytest

from kavka_broker.core.transaction.partitions import add_partitions, verify_partitions
from kavka_broker.core.transaction.state import EPOCH_MAX, Standing, Transaction
from kavka_broker.core.transaction.state import TransactionState as State
from kavka_broker.protocol.errors import BrokerError, ErrorCode

ME, NOW_MS = (7, 5), 10_000
T0, T1 = ("t", 0), ("t", 1)


def transaction(state: State, *places: tuple[str, int], epoch: int = 5) -> Transaction:
    return Transaction("x", Standing(7, epoch, 60_000, state, frozenset(places), started_ms=500, updated_ms=500))


def code(subject: Transaction | None, producer: tuple[int, int] = ME) -> ErrorCode:
    with pytest.raises(BrokerError) as raised:
        add_partitions(subject, producer, [T0], 2, NOW_MS)
    return raised.value.code


@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_the_first_partition_begins_a_transaction(state: State) -> None:
    following = add_partitions(transaction(state), ME, [T0], 2, NOW_MS)
    assert following is not None
    assert (following.state, following.partitions) == (State.ONGOING, frozenset({T0}))
    assert (following.started_ms, following.version) == (NOW_MS, 2)


def test_partitions_that_are_known_change_nothing() -> None:
    known = transaction(State.ONGOING, T0)
    assert add_partitions(known, ME, [T0], 2, NOW_MS) is None
    following = add_partitions(known, ME, [T0, T1], 0, NOW_MS)
    assert following is not None
    assert (following.partitions, following.started_ms) == (frozenset({T0, T1}), 500)


def test_who_may_not_add() -> None:
    assert code(None) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code(transaction(State.EMPTY), (8, 5)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code(transaction(State.EMPTY), (7, 4)) == ErrorCode.PRODUCER_FENCED
    assert code(transaction(State.EMPTY, epoch=EPOCH_MAX), (7, EPOCH_MAX)) == ErrorCode.PRODUCER_FENCED
    decided = transaction(State.PREPARE_COMMIT, T0)
    assert code(decided) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert code(decided, (8, 0)) == ErrorCode.CONCURRENT_TRANSACTIONS, "EndTxn may have told it of the next id"
    moving = transaction(State.EMPTY)
    following = add_partitions(moving, ME, [T0], 2, NOW_MS)
    assert following is not None
    moving.begin(following)
    assert code(moving, (7, 9)) == ErrorCode.CONCURRENT_TRANSACTIONS, "before id and epoch"


def test_verification_looks_at_what_is_written() -> None:
    known = transaction(State.ONGOING, T0)
    assert verify_partitions(known, ME, [T0, T1]) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
    for subject, producer, expected in (
        (None, ME, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (known, (7, 4), ErrorCode.PRODUCER_FENCED),
        (transaction(State.PREPARE_ABORT, T0), ME, ErrorCode.CONCURRENT_TRANSACTIONS),
    ):
        with pytest.raises(BrokerError) as raised:
            verify_partitions(subject, producer, [T0])
        assert raised.value.code == expected
