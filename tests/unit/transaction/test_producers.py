"""InitProducerId with a transactional id, and what time does."""

import pytest

from kavka_broker.core.transaction.ending import complete
from kavka_broker.core.transaction.producers import Init, fence, initialize, needs_producer_id
from kavka_broker.core.transaction.state import (
    EPOCH_EXHAUSTED,
    EPOCH_MAX,
    NEVER_MS,
    NO_EPOCH,
    NO_PRODUCER,
    Standing,
    Transaction,
    check_move,
)
from kavka_broker.core.transaction.state import TransactionState as State
from kavka_broker.core.transaction.timeouts import is_expired, is_overdue, note_ahead
from kavka_broker.protocol.errors import BrokerError, ErrorCode

ID, FRESH_ID, NOW_MS, TIMEOUT_MS = 7, 8, 10_000, 4_000
INIT = Init(TIMEOUT_MS)


def transaction(
    state: State = State.EMPTY, epoch: int = 5, *, timeout_ms: int = TIMEOUT_MS, last_epoch: int = NO_EPOCH
) -> Transaction:
    standing = Standing(ID, epoch, timeout_ms, state, started_ms=500, updated_ms=500, last_epoch=last_epoch)
    return Transaction("x", standing)


def given(standing: Standing) -> tuple[int, int, int]:
    return standing.producer_id, standing.producer_epoch, standing.last_epoch


def code(subject: Transaction, init: Init = INIT) -> ErrorCode:
    with pytest.raises(BrokerError) as raised:
        initialize(subject, init, FRESH_ID, 2, NOW_MS)
    return raised.value.code


def test_a_new_id_begins_with_epoch_0() -> None:
    unborn = Transaction("x", Standing(FRESH_ID, NO_EPOCH, TIMEOUT_MS))
    assert given(initialize(unborn, INIT, FRESH_ID, 2, NOW_MS)) == (FRESH_ID, 0, NO_EPOCH)
    assert needs_producer_id(None)
    assert not needs_producer_id(transaction())


@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_the_epoch_rises(state: State) -> None:
    known = transaction(state, last_epoch=4)
    following = initialize(known, INIT, FRESH_ID, 2, NOW_MS)
    check_move(known.standing, following)
    assert given(following) == (ID, 6, NO_EPOCH)
    assert given(initialize(known, Init(TIMEOUT_MS, (ID, 5)), FRESH_ID, 2, NOW_MS)) == (ID, 6, 5), "the same goes on"
    asked_again = initialize(known, Init(TIMEOUT_MS, (ID, 4)), FRESH_ID, 2, NOW_MS)
    assert given(asked_again) == (ID, 5, 4), "its answer was lost"
    assert code(known, Init(TIMEOUT_MS, (ID, 3))) == ErrorCode.PRODUCER_FENCED
    assert code(known, Init(TIMEOUT_MS, (ID + 1, 5))) == ErrorCode.PRODUCER_FENCED


def test_used_up_epochs_make_another_id() -> None:
    exhausted = transaction(epoch=EPOCH_EXHAUSTED)
    assert needs_producer_id(exhausted)
    assert given(initialize(exhausted, INIT, FRESH_ID, 2, NOW_MS)) == (FRESH_ID, 0, NO_EPOCH)
    going_on = initialize(exhausted, Init(TIMEOUT_MS, (ID, EPOCH_EXHAUSTED)), FRESH_ID, 2, NOW_MS)
    assert given(going_on) == (FRESH_ID, 0, EPOCH_EXHAUSTED)
    moved = Transaction("x", going_on)
    again = initialize(moved, Init(TIMEOUT_MS, (ID, EPOCH_EXHAUSTED)), FRESH_ID + 1, 2, NOW_MS)
    assert given(again) == (FRESH_ID, 0, EPOCH_EXHAUSTED), "the answer that told of the new id was lost"
    healed = initialize(transaction(epoch=EPOCH_MAX), INIT, FRESH_ID, 2, NOW_MS)
    assert given(healed) == (FRESH_ID, 0, NO_EPOCH)


def test_while_a_transaction_ends_a_producer_waits() -> None:
    for state in (State.PREPARE_COMMIT, State.PREPARE_ABORT):
        assert code(transaction(state)) == ErrorCode.CONCURRENT_TRANSACTIONS
        of_the_next = Init(TIMEOUT_MS, (FRESH_ID, 0))  # an id of which EndTxn may have told
        assert code(transaction(state), of_the_next) == ErrorCode.CONCURRENT_TRANSACTIONS
    moving = transaction()
    moving.begin(initialize(moving, INIT, FRESH_ID, 2, NOW_MS))
    assert code(moving) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert code(moving, Init(TIMEOUT_MS, (ID, 1))) == ErrorCode.CONCURRENT_TRANSACTIONS, "looked at first"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_open_transaction_is_fenced(version: int) -> None:
    ongoing = transaction(State.ONGOING)
    following = initialize(ongoing, INIT, FRESH_ID, version, NOW_MS)
    check_move(ongoing.standing, following)
    assert following.state is State.PREPARE_ABORT
    assert (following.producer_id, following.producer_epoch) == (ID, 6), "one bump, whatever the version"
    assert following.last_epoch == (5 if version == 2 else NO_EPOCH)


@pytest.mark.parametrize("epoch", [EPOCH_EXHAUSTED - 1, EPOCH_EXHAUSTED, EPOCH_MAX])
@pytest.mark.parametrize("version", [0, 2])
def test_a_fence_at_the_last_epochs_leaves_an_id_that_goes_on(epoch: int, version: int) -> None:
    known = transaction(State.ONGOING, epoch)
    prepared = fence(known.standing, FRESH_ID, version, NOW_MS)
    check_move(known.standing, prepared)
    assert prepared.producer_epoch == min(epoch + 1, EPOCH_MAX)
    completed = complete(prepared, NOW_MS)
    check_move(prepared, completed)
    if version == 2 and epoch >= EPOCH_EXHAUSTED:
        assert (completed.producer_id, completed.producer_epoch) == (FRESH_ID, 0)
    following = initialize(Transaction("x", completed), INIT, FRESH_ID + 1, version, NOW_MS)
    assert 0 <= following.producer_epoch < EPOCH_MAX


def test_only_open_transactions_are_overdue() -> None:
    late_ms = 500 + TIMEOUT_MS + 1
    assert is_overdue(transaction(State.ONGOING), late_ms)
    assert not is_overdue(transaction(State.ONGOING), late_ms - 1)
    assert not is_overdue(transaction(State.ONGOING, timeout_ms=NEVER_MS), NEVER_MS * 2), "another system ends it"
    assert not is_overdue(transaction(State.PREPARE_ABORT), late_ms)
    moving = transaction(State.ONGOING)
    moving.begin(fence(moving.standing, NO_PRODUCER, 2, NOW_MS))
    assert not is_overdue(moving, late_ms)


def test_a_clock_that_is_behind_holds_no_transaction_open() -> None:
    """The broker that coordinated it before was an hour ahead, or this one's clock was set back by an hour."""
    open_one, behind_ms = transaction(State.ONGOING), 500 - 3_600_000
    note_ahead(open_one, behind_ms)
    assert not is_overdue(open_one, behind_ms + TIMEOUT_MS)
    note_ahead(open_one, behind_ms + TIMEOUT_MS + 1)
    assert is_overdue(open_one, behind_ms + TIMEOUT_MS + 1)
    note_ahead(open_one, behind_ms - 3_600_000)
    assert not is_overdue(open_one, behind_ms - 3_600_000 + TIMEOUT_MS), "set back once more: from then on"
    assert is_overdue(open_one, behind_ms - 3_600_000 + TIMEOUT_MS + 1)


def test_the_next_transaction_begins_when_it_says() -> None:
    ended = transaction(State.ONGOING)
    note_ahead(ended, 500 - 3_600_000)
    ended.begin(fence(ended.standing, NO_PRODUCER, 2, NOW_MS))
    ended.finish()
    ended.begin(complete(ended.standing, NOW_MS))
    ended.finish()
    ended.begin(initialize(ended, INIT, FRESH_ID, 2, NOW_MS))
    ended.finish()
    assert ended.began_ms is None


def test_only_resting_ids_expire() -> None:
    for state in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
        assert is_expired(transaction(state), 100, 600)
        assert not is_expired(transaction(state), 100, 599)
    for state in (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT):
        assert not is_expired(transaction(state), 100, 10_000)


def test_another_producer_id_begins_with_epoch_0() -> None:
    used_up = Standing(ID, EPOCH_MAX, TIMEOUT_MS, State.EMPTY)
    check_move(used_up, Standing(FRESH_ID, 0, TIMEOUT_MS, State.EMPTY))
    with pytest.raises(AssertionError):
        check_move(used_up, Standing(FRESH_ID, 1, TIMEOUT_MS, State.EMPTY))
