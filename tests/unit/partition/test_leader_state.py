"""Single rules of a leader over its followers, at their bounds; the scenarios play them together."""

import pytest

from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.core.partition.isr_proposal import IsrAnswer
from kavka_broker.core.partition.leader import NEVER_MS, NO_OFFSET, Contact, LeaderState, ProposalOutcome
from kavka_broker.protocol.errors import ErrorCode

LAG_MS = 100.0


def led(*isr: int, replicas: tuple[int, ...] = (1, 2, 3), now_ms: float = 50, start_offset: int = 0) -> LeaderState:
    """Broker 1 in epoch 7, of which each follower has a contact of its own."""
    leader = LeaderState(1, 7, start_offset, LAG_MS)
    take(leader, *isr, replicas=replicas, now_ms=now_ms)
    return leader


def take(
    leader: LeaderState, *isr: int, epoch: int = 0, replicas: tuple[int, ...] = (1, 2, 3), now_ms: float = 50
) -> None:
    leader.apply(PartitionState(replicas, isr, 1, leader_epoch=7, partition_epoch=epoch), lambda _: Contact(), now_ms)


def fetch(leader: LeaderState, broker_id: int, offset: int, end_offset: int, now_ms: float) -> None:
    follower = leader.followers[broker_id]
    leader.fetched(follower, offset, log_start_offset=0, broker_epoch=4, end_offset=end_offset, now_ms=now_ms)


def test_only_who_is_in_sync_as_a_reign_begins_is_given_the_time_of_a_lag() -> None:
    leader = led(1, 2)
    assert {one: follower.caught_up_ms for one, follower in leader} == {2: 50, 3: NEVER_MS}
    take(leader, 1, 2, 4, epoch=1, replicas=(1, 2, 3, 4), now_ms=60)
    assert leader.followers[4].caught_up_ms == NEVER_MS


def test_a_state_that_is_older_changes_nothing() -> None:
    leader = led(1, 2)
    take(leader, 1, 2, 3, epoch=2)
    take(leader, 1, epoch=1)
    assert (leader.isr, leader.partition_epoch) == ((1, 2, 3), 2)


def test_who_has_what_there_was_when_it_asked_last_was_caught_up_then() -> None:
    leader = led(1, 3)
    fetch(leader, 2, 0, 5, now_ms=60)
    assert leader.followers[2].caught_up_ms == NEVER_MS
    fetch(leader, 2, 5, 9, now_ms=70)
    assert leader.followers[2].caught_up_ms == 60
    fetch(leader, 2, 8, 12, now_ms=80)
    assert leader.followers[2].caught_up_ms == 60, "9 were there at 70"
    fetch(leader, 2, 12, 12, now_ms=90)
    assert leader.followers[2].caught_up_ms == 90


def test_what_is_appended_makes_nobody_late_who_had_all() -> None:
    leader = led(1, 2, 3)
    fetch(leader, 2, 5, 5, now_ms=60)
    fetch(leader, 3, 4, 5, now_ms=60)
    leader.followers[2].contact.fetched_ms = leader.followers[3].contact.fetched_ms = 150
    leader.appended(5)
    assert (leader.followers[2].caught_up_ms, leader.followers[2].fetched_ms) == (150, 150)
    assert (leader.followers[3].caught_up_ms, leader.followers[3].fetched_ms) == (50, 60)


@pytest.mark.parametrize(("now_ms", "late"), [(150, ()), (150.5, (2,))])
def test_a_member_is_late_only_beyond_the_lag(now_ms: float, late: tuple[int, ...]) -> None:
    assert led(1, 2).lagging(9, now_ms) == late


@pytest.mark.parametrize(("silent_ms", "who"), [(100, (3,)), (100.5, ())])
def test_a_silent_follower_does_not_come_in(silent_ms: float, who: tuple[int, ...]) -> None:
    leader = led(1, 2)
    fetch(leader, 3, 5, 5, now_ms=200)
    assert leader.joining(5, 5, lambda _: 4, 200 + silent_ms) == who


@pytest.mark.parametrize(("offset", "who"), [(4, ()), (5, (3,))])
def test_nobody_comes_in_before_the_high_watermark_and_the_epochs_start(offset: int, who: tuple[int, ...]) -> None:
    for high_watermark, start_offset in ((5, 0), (0, 5)):
        leader = led(1, 2, start_offset=start_offset)
        fetch(leader, 3, offset, 6, now_ms=199)
        leader.followers[3].caught_up_ms = 200
        assert leader.joining(high_watermark, 6, lambda _: 4, 200) == who


@pytest.mark.parametrize(("registered", "who"), [(4, (3,)), (5, ()), (None, ())])
def test_another_incarnation_does_not_come_in(registered: int | None, who: tuple[int, ...]) -> None:
    leader = led(1, 2)
    fetch(leader, 3, 5, 5, now_ms=200)
    assert leader.joining(5, 5, lambda _: registered, 200) == who


def test_nothing_is_committed_while_too_few_are_in_sync() -> None:
    leader = led(1, 2)
    fetch(leader, 2, 5, 9, now_ms=60)
    assert leader.committed_end(9, 3, lambda _: 4, 60) == NO_OFFSET
    assert leader.committed_end(9, 2, lambda _: 4, 60) == 5


@pytest.mark.parametrize(
    ("answer", "settled", "isr"),
    [
        (IsrAnswer(ErrorCode.NONE, 1, 7, (1, 2, 3), 1), ProposalOutcome.WAIT, (1, 2)),
        (IsrAnswer(ErrorCode.NONE, 1, 7, (1, 2, 3), 0), ProposalOutcome.DONE, (1, 2, 3)),
        (IsrAnswer(ErrorCode.NONE, 1, 8, (1, 2, 3), 1), ProposalOutcome.WAIT, (1, 2)),
        (IsrAnswer(ErrorCode.NONE, 1, 7, (1, 2, 3), -1), ProposalOutcome.WAIT, (1, 2)),
        (IsrAnswer(ErrorCode.INELIGIBLE_REPLICA), ProposalOutcome.REFUSED, (1, 2)),
        (IsrAnswer(ErrorCode.FENCED_LEADER_EPOCH), ProposalOutcome.WAIT, (1, 2)),
        (IsrAnswer(ErrorCode.NOT_CONTROLLER), ProposalOutcome.AGAIN, (1, 2)),
    ],
)
def test_what_an_answer_makes_of_a_proposal(answer: IsrAnswer, settled: ProposalOutcome, isr: tuple[int, ...]) -> None:
    leader = led(1, 2)
    change = leader.propose(bytes(16), 0, add=(3,), remove=())
    assert leader.maximal_isr == (1, 2, 3)
    assert leader.answered(change, answer) is settled
    assert leader.isr == isr
    assert (leader.pending is None) is (settled in (ProposalOutcome.DONE, ProposalOutcome.REFUSED))


def test_a_smaller_isr_counts_when_the_metadata_has_it_which_may_say_of_a_higher_bound_before() -> None:
    leader = led(1, 2)
    fetch(leader, 2, 5, 9, now_ms=60)
    change = leader.propose(bytes(16), 0, add=(), remove=(2,))
    assert leader.answered(change, IsrAnswer(ErrorCode.NONE, 1, 7, (1,), 1)) is ProposalOutcome.WAIT
    assert leader.committed_end(9, 1, lambda _: 4, 60) == 5, "by the former bound, 1, and the larger set"
    take(leader, 1, epoch=1)
    assert leader.committed_end(9, 2, lambda _: 4, 60) == NO_OFFSET, "by the bound that came before the ISR"


def test_an_answer_to_a_proposal_that_is_settled_already_counts_for_nothing() -> None:
    leader = led(1, 2)
    change = leader.propose(bytes(16), 0, add=(3,), remove=())
    take(leader, 1, epoch=1)
    assert leader.answered(change, IsrAnswer(ErrorCode.NONE, 1, 7, (1, 2, 3), 2)) is ProposalOutcome.DONE
    assert leader.isr == (1,)


def test_nobody_is_proposed_while_a_proposal_is_under_way() -> None:
    leader = led(1)
    for broker_id in (2, 3):
        fetch(leader, broker_id, 5, 5, now_ms=200)
    assert leader.joining(5, 5, lambda _: 4, 200) == (2, 3)
    leader.propose(bytes(16), 0, add=(2,), remove=())
    assert leader.joining(5, 5, lambda _: 4, 200) == ()
    assert leader.lagging(9, 9_000) == ()


def test_where_all_are_in_sync_nobody_comes_in() -> None:
    leader = led(1, 2, 3)
    fetch(leader, 2, 5, 5, now_ms=200)
    assert leader.joining(5, 5, lambda _: 4, 200) == ()


@pytest.mark.parametrize(
    ("epochs", "least"),
    [
        ({2: 4, 3: 4}, 3),  # both are there, as they fetched
        ({2: 5, 3: 4}, NO_OFFSET),  # 2 has begun again, and a crash may have taken the start of its log back
        ({2: None, 3: 4}, 3),  # 2 is away: nobody waits for it
        ({2: None, 3: None}, 9),
    ],
)
def test_where_a_log_begins_counts_from_the_present_incarnation_only(epochs: dict[int, int | None], least: int) -> None:
    leader = led(1, 2, 3)
    for broker_id, start_offset in ((2, 5), (3, 3)):
        leader.fetched(
            leader.followers[broker_id], 9, log_start_offset=start_offset, broker_epoch=4, end_offset=9, now_ms=60
        )
    assert leader.least_start(9, epochs.__getitem__) == least
