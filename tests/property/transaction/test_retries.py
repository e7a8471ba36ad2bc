"""An EndTxn whose answer was lost is answered as before, also where it has used up the epochs of its producer id."""

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kavka_broker.core.transaction.ending import End, end, told
from kavka_broker.core.transaction.state import BUMPS_FROM, EPOCH_EXHAUSTED, Standing, Transaction
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from tests.property.transaction.test_replay import Coordinator, replay

NAME = "a"
LIVES = st.lists(
    st.tuples(
        st.sampled_from(("commit", "abort", "abort of nothing")),
        st.booleans(),  # whether the coordinator moves before the request comes again
    ),
    min_size=1,
    max_size=6,
)


def outcome(standing: Standing, asked: End) -> ErrorCode | Standing | None:
    """What the request is told, by a coordinator that finds the id so."""
    try:
        return end(Transaction(NAME, standing), asked, 9_999, 5_000)
    except BrokerError as error:
        return error.code


def moved(coordinator: Coordinator) -> Standing:
    """As the next coordinator knows the id."""
    return replay(coordinator.log)[NAME]


@settings(max_examples=100, deadline=None)
@given(ends=LIVES, first_epoch=st.integers(EPOCH_EXHAUSTED - 5, EPOCH_EXHAUSTED))
@example(ends=[("commit", True), ("commit", False)], first_epoch=EPOCH_EXHAUSTED)
@example(ends=[("abort of nothing", False)], first_epoch=EPOCH_EXHAUSTED)
def test_an_end_that_comes_again_is_told_the_same(ends: list[tuple[str, bool]], first_epoch: int) -> None:
    coordinator = Coordinator(first_epoch)
    coordinator.step(NAME, "init", BUMPS_FROM, 0)
    for what, moves in ends:
        transaction = coordinator.live[NAME]
        commits = what == "commit"
        if what != "abort of nothing":
            coordinator.step(NAME, "add", BUMPS_FROM, 0)
        before = transaction.standing
        asked = End(before.producer_id, before.producer_epoch, commits, BUMPS_FROM)
        coordinator.step(NAME, "commit" if commits else "abort", BUMPS_FROM, 0)
        answer = told(transaction.standing)
        assert answer not in (told(before), (before.producer_id, EPOCH_EXHAUSTED + 1))
        assert outcome(transaction.standing, asked) is ErrorCode.CONCURRENT_TRANSACTIONS, "its markers are written"
        coordinator.step(NAME, "mark", BUMPS_FROM, 0)
        known = moved(coordinator) if moves else transaction.standing
        assert outcome(known, asked) is None, f"{asked}, asked again of {known}"
        assert told(known) == answer
        other = replace(asked, commits=not commits)
        assert outcome(known, other) is ErrorCode.INVALID_TXN_STATE, "another end than it had"
        coordinator.step(NAME, "add", BUMPS_FROM, 0)
        assert outcome(transaction.standing, asked) in (
            ErrorCode.PRODUCER_FENCED,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ), "it would end the next transaction"
        coordinator.step(NAME, "abort", BUMPS_FROM, 0)
        coordinator.step(NAME, "mark", BUMPS_FROM, 0)


def test_the_retry_of_another_id_is_not_taken_for_one_at_the_overflow() -> None:
    """Only the id before, with its last epoch, may ask again."""
    coordinator = Coordinator(EPOCH_EXHAUSTED)
    for step in ("init", "add", "commit", "mark"):
        coordinator.step(NAME, step, BUMPS_FROM, 0)
    standing = coordinator.live[NAME].standing
    assert standing.producer_epoch == 0
    right = End(standing.previous_producer_id, EPOCH_EXHAUSTED, True, BUMPS_FROM)
    assert outcome(standing, right) is None
    for wrong in (
        replace(right, producer_id=right.producer_id + 1_000),
        replace(right, producer_epoch=EPOCH_EXHAUSTED - 1),
    ):
        assert outcome(standing, wrong) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
