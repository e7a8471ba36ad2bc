"""What a partition knows of producers and of their transactions, rule by rule."""

import pytest

from kavka_broker.core.partition.leader_epochs import LeaderEpochs
from kavka_broker.core.partition.producer_state import (
    BEHIND_REFUSED_MAX,
    REFUSED_MAX,
    SEQUENCE_MAX,
    Producer,
    ProducerStates,
    WrittenBatch,
    next_sequence,
)
from kavka_broker.core.partition.transactions import NO_OFFSET, Ended, Transactions
from kavka_broker.protocol.errors import BrokerError, ErrorCode


def written(states: ProducerStates, producer_id: int, offset: int, timestamp_ms: int = 0, epoch: int = 0) -> None:
    states.append(producer_id, epoch, WrittenBatch(0, 0, offset, offset, timestamp_ms), is_transactional=False)


def code_of(states: ProducerStates, epoch: int, sequence: int, producer_id: int = 1) -> ErrorCode:
    try:
        states.check(producer_id, epoch, sequence, sequence)
    except BrokerError as refusal:
        return refusal.code
    return ErrorCode.NONE


@pytest.mark.parametrize(("count", "then"), [(1, 0), (2, 1), (SEQUENCE_MAX, SEQUENCE_MAX - 1)])
def test_the_sequence_after_the_largest_is_0(count: int, then: int) -> None:
    assert next_sequence(SEQUENCE_MAX, count) == then


# --- behind a batch that was refused ---------------------------------------------------------------------------------

REFUSAL = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("epoch", "sequence", "code"),
    [
        (3, 9, ErrorCode.NONE),
        (3, 10, ErrorCode.NONE),
        (3, 11, REFUSAL),
        (3, (10 + SEQUENCE_MAX // 2) & SEQUENCE_MAX, REFUSAL),
        (3, (11 + SEQUENCE_MAX // 2) & SEQUENCE_MAX, ErrorCode.NONE),
        (4, 11, ErrorCode.NONE),
    ],
)
def test_what_follows_a_refused_batch_gets_its_error(epoch: int, sequence: int, code: ErrorCode) -> None:
    states = ProducerStates()
    states.refuse(1, 3, 10, REFUSAL)
    states.refuse(1, 3, 12, ErrorCode.KAFKA_STORAGE_ERROR)  # the first one counts
    assert code_of(states, epoch, sequence) is code
    assert code_of(states, epoch, sequence, producer_id=2) is ErrorCode.NONE


def test_a_refused_batch_is_forgotten_once_the_producer_goes_on() -> None:
    states = ProducerStates()
    states.refuse(1, 0, 10, REFUSAL)
    states.refuse(2, 0, 10, REFUSAL)
    written(states, 1, 0)
    assert (code_of(states, 0, 11), code_of(states, 0, 11, 2)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, REFUSAL)


def test_what_is_next_is_taken_although_an_earlier_batch_was_refused_here() -> None:
    """Another broker led meanwhile, and took it."""
    states = ProducerStates()
    written(states, 1, 0)
    states.refuse(1, 0, 0, REFUSAL)
    assert code_of(states, 0, 1) is ErrorCode.NONE


def test_no_more_get_the_error_than_may_be_in_flight_behind_it() -> None:
    states = ProducerStates()
    written(states, 1, 0)
    for _ in range(2):
        states.refuse(1, 0, 1, REFUSAL)
        behind = [code_of(states, 0, sequence) for sequence in range(2, 7)]
        assert behind == [REFUSAL] * BEHIND_REFUSED_MAX + [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]


def test_a_refused_batch_of_a_newer_epoch_takes_the_place_of_the_older() -> None:
    states = ProducerStates()
    states.refuse(1, 0, 10, REFUSAL)
    states.refuse(1, 1, 0, REFUSAL)
    states.refuse(1, 0, 10, REFUSAL)
    assert (code_of(states, 0, 11), code_of(states, 1, 1)) == (ErrorCode.NONE, REFUSAL)


def test_refused_batches_are_bounded() -> None:
    states = ProducerStates()
    for producer_id in range(REFUSED_MAX + 1):
        states.refuse(producer_id, 0, 0, REFUSAL)
    assert code_of(states, 0, 1, 0) is ErrorCode.NONE
    assert code_of(states, 0, 1, REFUSED_MAX) is REFUSAL


# --- how long a producer is known -----------------------------------------------------------------------------------


def test_the_most_silent_tenth_makes_room() -> None:
    states = ProducerStates(producers_max=10)
    for producer_id in range(10):
        written(states, producer_id, producer_id, timestamp_ms=100 - producer_id)
    written(states, 10, 10, timestamp_ms=200)
    assert [producer_id for producer_id, _ in states] == [*range(9), 10]


def test_a_marker_of_an_unknown_producer_may_say_any_epoch_of_its_coordinator() -> None:
    states = ProducerStates()
    states.check_marker(2, 0, -5, epochs_rise=False)
    assert states.end_transaction(2, 0, -5, 50, 2, is_aborted=False) is None


def test_a_producer_expires_by_its_last_word_a_marker_too() -> None:
    states = ProducerStates()
    written(states, 1, 0, timestamp_ms=0)
    written(states, 2, 1, timestamp_ms=0)
    states.end_transaction(2, 0, 0, 50, 2, is_aborted=False)
    assert states.expire(99, 100) == 0
    assert states.expire(100, 100) == 1
    assert states.get(2) is not None
    assert states.expire(150, 100) == 1


def test_who_is_in_a_transaction_is_not_forgotten() -> None:
    states = ProducerStates(producers_max=1)
    states.append(1, 0, WrittenBatch(0, 0, 0, 0, 0), is_transactional=True)
    assert states.expire(10**9, 1) == 0
    written(states, 2, 1)
    assert [producer_id for producer_id, _ in states] == [1, 2]


def test_a_tenth_of_the_producers_is_in_no_transaction() -> None:
    states = ProducerStates(producers_max=20)
    for producer_id in range(100):
        written(states, producer_id, 2 * producer_id)
        if states.may_begin:
            batch = WrittenBatch(1, 1, 2 * producer_id + 1, 2 * producer_id + 1, 0)
            states.append(producer_id, 0, batch, is_transactional=True)
    assert (len(states.transactions), len(states)) == (18, 20)


def test_a_snapshot_brings_what_is_open_the_oldest_first() -> None:
    states = ProducerStates()
    opened = {1: 30, 2: NO_OFFSET, 3: 20}
    states.replace((one, Producer(0, 0, transaction_first_offset=offset)) for one, offset in opened.items())
    assert states.transactions.first_unstable_offset == states.transactions.first_open_offset == 20
    assert [states.transactions.is_open(one) for one in opened] == [True, False, True]


# --- transactions ---------------------------------------------------------------------------------------------------


def test_nothing_is_stable_from_the_oldest_transaction_on_that_is_not_settled() -> None:
    transactions = Transactions()
    transactions.begin(1, 10)
    transactions.begin(2, 15)
    assert transactions.first_unstable_offset == 10
    assert transactions.end(1, 20, is_aborted=True) == Ended(1, 10, 20, 15, is_aborted=True)
    assert (transactions.first_unstable_offset, transactions.first_open_offset) == (10, 15)
    transactions.replicated(20)
    assert transactions.first_unstable_offset == 10, "its marker may still be lost"
    transactions.replicated(21)
    assert transactions.first_unstable_offset == 15
    assert transactions.end(2, 22, is_aborted=False) == Ended(2, 15, 22, 23, is_aborted=False)
    transactions.replicated(23)
    assert (transactions.first_unstable_offset, transactions.ended) == (NO_OFFSET, [])


def test_a_marker_of_nothing_ends_nothing() -> None:
    assert Transactions().end(1, 5, is_aborted=True) is None


def test_one_that_is_settled_is_not_told_again() -> None:
    transactions = Transactions()
    for producer_id, first_offset, marker_offset in ((1, 0, 5), (2, 6, 9)):
        transactions.begin(producer_id, first_offset)
        transactions.end(producer_id, marker_offset, is_aborted=False)
    transactions.replicated(6)
    assert [one.producer_id for one in transactions.ended] == [2]
    assert transactions.first_unstable_offset == 6


# --- leader epochs --------------------------------------------------------------------------------------------------


def test_no_epoch_is_left_in_a_log_that_begins_anew() -> None:
    epochs = LeaderEpochs([(1, 0), (3, 10)])
    epochs.clear()
    assert (epochs.entries, epochs.latest, epochs.begun) == ((), -1, -1)


def test_a_marker_of_a_newer_epoch_begins_the_sequences_anew() -> None:
    states = ProducerStates()
    written(states, 1, 0, epoch=3)
    states.end_transaction(1, 4, 0, 0, 1, is_aborted=True)
    assert code_of(states, 3, 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert code_of(states, 4, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code_of(states, 4, 0) is ErrorCode.NONE
    assert code_of(states, 5, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code_of(states, 5, 0) is ErrorCode.NONE
