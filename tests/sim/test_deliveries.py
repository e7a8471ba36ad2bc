"""The judge of share groups: what it objects to, and what late answers and late words are."""

import pytest

from tests.sim.deliveries import ACCEPT, RELEASE, RENEW, Asked, Deliveries, Source

PLACE = (bytes(16), 0)
WINDOW, OTHER_WINDOW = object(), object()


def judge() -> Deliveries:
    record = Deliveries()
    record.lock_seconds = 1.0
    record.is_open = lambda delivery: True
    return record


def give(
    record: Deliveries, member: str, asked: float, told: float, count: int = 1, window: object = WINDOW
) -> list[str]:
    """The problems once a member has got offset 5."""
    record.acquires(Asked(member, PLACE, asked, told, Source(window, member)), [5], count)
    return [problem.partition(" ")[0].rstrip(":") for problem in record.problems]


def test_a_record_with_two_members_is_found() -> None:
    record = judge()
    assert give(record, "a", 1.0, 1.1) == []
    assert give(record, "b", 1.2, 1.3, count=2) == ["held-twice"]


@pytest.mark.parametrize("told", [1.95, 3.0])
def test_a_lock_that_may_be_over_by_the_fastest_clock_holds_nothing(told: float) -> None:
    record = judge()
    give(record, "a", 1.0, 1.1)
    assert give(record, "b", 1.2, told, count=2) == []


def test_an_answer_that_comes_late_is_of_an_earlier_delivery() -> None:
    record = judge()
    give(record, "b", 3.0, 3.1, count=2)
    assert give(record, "a", 1.0, 3.2) == []


def test_a_fetch_that_waited_while_another_had_the_record_gets_the_later_delivery() -> None:
    """Seed 80008 alone: the judge thought that the member accepted a record of another."""
    record = judge()
    record.is_open = lambda delivery: False
    give(record, "a", 2.0, 2.1)
    record.is_answered(PLACE, {5: RENEW}, {5: 1}, 2.1, 2.2)
    assert give(record, "b", 1.0, 2.3, count=2) == []
    assert record.held_by_others("b", PLACE) == []


def test_a_word_on_anothers_record_gives_up_nothing() -> None:
    record = judge()
    give(record, "a", 1.0, 1.1)
    record.says("b", PLACE, {5: RELEASE})
    assert give(record, "c", 1.2, 1.3, count=2) == ["held-twice"]


def test_what_is_given_up_may_be_given_to_another() -> None:
    record = judge()
    give(record, "a", 1.0, 1.1)
    record.says("a", PLACE, {5: RENEW})
    record.says("a", PLACE, {5: RELEASE})
    assert give(record, "b", 1.2, 1.3, count=2) == []


def test_another_leader_may_deliver_once_more() -> None:
    record = judge()
    give(record, "a", 1.0, 1.1, count=3)
    assert give(record, "b", 1.2, 1.3, count=1, window=OTHER_WINDOW) == []


def test_a_taken_record_and_one_that_is_settled_are_found() -> None:
    record = judge()
    give(record, "a", 1.0, 1.1)
    record.now = lambda: 1.3
    assert record.held_by_others("b", PLACE) == [5]
    record.takes("b", PLACE, [5], 1.2, WINDOW)
    record.says("a", PLACE, {5: ACCEPT})
    record.is_answered(PLACE, {5: ACCEPT}, {5: 1}, 1.4, 1.5)
    assert give(record, "b", 1.6, 1.7, count=2) == ["taken-away", "settled-again"]


def test_a_count_that_falls_and_a_record_left_behind_are_found() -> None:
    record = judge()
    give(record, "a", 1.0, 1.1)
    record.says("a", PLACE, {5: RELEASE})
    record.is_answered(PLACE, {5: RELEASE}, {5: 1}, 1.1, 1.2)
    assert give(record, "a", 1.3, 1.4, count=1, window=OTHER_WINDOW) == ["count-fell"]
    assert [problem.partition(":")[0] for problem in record.forgotten([(PLACE, 5)])] == ["forgotten"]


def test_a_leader_that_is_cut_off_may_give_out_what_its_successor_has_settled() -> None:
    record = judge()
    give(record, "a", 1.0, 1.1)
    record.is_answered(PLACE, {5: ACCEPT}, {5: 1}, 1.2, 1.3)
    source = Source(OTHER_WINDOW, "b")
    record.acquires(Asked("b", PLACE, 2.0, 2.1, source, is_current=False), [5], 1)
    assert not record.problems
    record.acquires(Asked("b", PLACE, 2.2, 2.3, source), [5], 2)
    assert [problem.partition(":")[0] for problem in record.problems] == ["settled-again"]
