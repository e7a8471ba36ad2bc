"""EndTxn by state, request and age, as a table: what Apache Kafka 4.3.1 says."""

from dataclasses import replace

import pytest

from kavka_broker.core.transaction.ending import End, complete, end, told
from kavka_broker.core.transaction.state import EPOCH_EXHAUSTED, EPOCH_MAX, NO_PRODUCER, Standing, Transaction
from kavka_broker.core.transaction.state import TransactionState as State
from kavka_broker.protocol.errors import BrokerError, ErrorCode

NOW_MS = 1_000
ID, EPOCH, FRESH_ID = 7, 5, 8
DONE, BUMPED = "done", "bumped"
FENCED, INVALID = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE
BUSY, UNMAPPED = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_PRODUCER_ID_MAPPING

Outcome = str | ErrorCode


def standing(state: State, epoch: int = EPOCH, **more: int) -> Standing:
    partitions = frozenset({("t", 0)}) if state in (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT) else ()
    return Standing(ID, epoch, 60_000, state, frozenset(partitions), started_ms=500, updated_ms=500, **more)


def outcome(
    transaction: Transaction | None, epoch: int, *, commits: bool, version: int = 2, producer_id: int = ID
) -> Outcome:
    try:
        following = end(transaction, End(producer_id, epoch, commits, version), FRESH_ID, NOW_MS)
    except BrokerError as error:
        return error.code
    if following is None:
        return DONE
    assert transaction is not None
    transaction.begin(following)
    assert following.state is (State.PREPARE_COMMIT if commits else State.PREPARE_ABORT)
    return BUMPED if following.producer_epoch == transaction.standing.producer_epoch + 1 else "kept"


#: State; abort again, abort now, commit again, commit now. "Again" is a request of the epoch before. What is said of
#: decided transactions stands below.
VERSION_2 = [
    (State.EMPTY, FENCED, BUMPED, FENCED, INVALID),
    (State.ONGOING, FENCED, BUMPED, FENCED, BUMPED),
    (State.COMPLETE_COMMIT, INVALID, BUMPED, DONE, INVALID),
    (State.COMPLETE_ABORT, DONE, BUMPED, INVALID, INVALID),
]


@pytest.mark.parametrize(("state", "abort_again", "abort_now", "commit_again", "commit_now"), VERSION_2)
def test_version_2(
    state: State, abort_again: Outcome, abort_now: Outcome, commit_again: Outcome, commit_now: Outcome
) -> None:
    for commits, epoch, expected in (
        (False, EPOCH - 1, abort_again),
        (False, EPOCH, abort_now),
        (True, EPOCH - 1, commit_again),
        (True, EPOCH, commit_now),
        (False, EPOCH - 2, FENCED),
        (True, EPOCH + 1, FENCED),
    ):
        transaction = Transaction("x", standing(state, version=2))
        assert outcome(transaction, epoch, commits=commits) == expected, (commits, epoch)


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("state", [State.PREPARE_COMMIT, State.PREPARE_ABORT])
def test_a_decided_transaction_is_looked_at_before_id_and_epoch(state: State, *, commits: bool) -> None:
    """Its completion is a move that is under way: the producer may have been told the next id (KAFKA-18660)."""
    for producer_id, epoch in ((ID, EPOCH - 2), (ID, EPOCH - 1), (ID, EPOCH), (ID, EPOCH + 1), (FRESH_ID, 0)):
        transaction = Transaction("x", standing(state, version=2))
        assert outcome(transaction, epoch, commits=commits, producer_id=producer_id) == BUSY


@pytest.mark.parametrize("state", [State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
@pytest.mark.parametrize("commits", [True, False])
def test_a_producer_of_version_2_that_one_of_version_1_has_fenced_stays_so(state: State, *, commits: bool) -> None:
    """Seed 5 of the simulation: it was told that it had ended the transaction, and got the other one's epoch."""
    assert outcome(Transaction("x", standing(state, version=0)), EPOCH - 1, commits=commits) == FENCED


#: State; abort, commit. The epoch before is always fenced.
VERSION_1 = [
    (State.EMPTY, INVALID, INVALID),
    (State.ONGOING, "kept", "kept"),
    (State.PREPARE_COMMIT, BUSY, BUSY),
    (State.PREPARE_ABORT, BUSY, BUSY),
    (State.COMPLETE_COMMIT, INVALID, DONE),
    (State.COMPLETE_ABORT, DONE, INVALID),
]


@pytest.mark.parametrize(("state", "abort", "commit"), VERSION_1)
def test_version_1(state: State, abort: Outcome, commit: Outcome) -> None:
    for commits, expected in ((False, abort), (True, commit)):
        assert outcome(Transaction("x", standing(state)), EPOCH, commits=commits, version=0) == expected
        assert outcome(Transaction("x", standing(state)), EPOCH - 1, commits=commits, version=0) == FENCED


@pytest.mark.parametrize("version", [0, 2])
def test_strangers_are_refused(version: int) -> None:
    ongoing = standing(State.ONGOING)
    assert outcome(None, EPOCH, commits=True, version=version) == UNMAPPED
    assert outcome(Transaction("x", ongoing), EPOCH, commits=True, version=version, producer_id=ID + 1) == UNMAPPED
    moving = Transaction("x", ongoing)
    moving.begin(replace(ongoing, partitions=frozenset({("t", 0), ("t", 1)})))
    assert outcome(moving, EPOCH, commits=True, version=version) == BUSY
    fenced = Transaction("x", standing(State.COMPLETE_ABORT, EPOCH_MAX))
    assert outcome(fenced, EPOCH_MAX, commits=False, version=version) == FENCED, "an epoch that nobody is given"


def test_a_pending_move_is_looked_at_before_the_epoch() -> None:
    """Else a producer fences itself with an epoch that is still pending (KAFKA-18660)."""
    ongoing = standing(State.ONGOING)
    moving = Transaction("x", ongoing)
    moving.begin(replace(ongoing, updated_ms=NOW_MS))
    assert outcome(moving, EPOCH + 1, commits=True) == BUSY


def test_the_last_epoch_ends_a_producer_id() -> None:
    transaction = Transaction("x", standing(State.ONGOING, EPOCH_EXHAUSTED))
    prepared = end(transaction, End(ID, EPOCH_EXHAUSTED, True, 2), FRESH_ID, NOW_MS)
    assert prepared is not None
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (ID, EPOCH_MAX, FRESH_ID)
    assert told(prepared) == (FRESH_ID, 0), "the answer names the next transaction's"
    transaction.begin(prepared)
    transaction.finish()
    completed = complete(prepared, NOW_MS)
    assert (completed.producer_id, completed.producer_epoch, completed.next_producer_id) == (FRESH_ID, 0, NO_PRODUCER)
    assert (completed.previous_producer_id, completed.last_epoch) == (ID, EPOCH_EXHAUSTED)
    transaction.begin(completed)
    transaction.finish()
    assert outcome(transaction, EPOCH_EXHAUSTED, commits=True) == DONE, (
        "the answer was lost, and the request comes again"
    )
    assert outcome(transaction, EPOCH_EXHAUSTED, commits=False) == INVALID
    assert outcome(transaction, 0, commits=False, producer_id=FRESH_ID) == BUMPED


def test_an_abort_of_nothing_begins_now() -> None:
    prepared = end(Transaction("x", standing(State.COMPLETE_COMMIT)), End(ID, EPOCH, False, 2), FRESH_ID, NOW_MS)
    assert prepared is not None
    assert (prepared.started_ms, prepared.partitions) == (NOW_MS, frozenset())
