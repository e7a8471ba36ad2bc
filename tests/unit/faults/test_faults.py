"""The fault plan as a test writes it."""

import re
from collections.abc import Callable

import pytest

from kavka_pytest.fault_plan import Place, Request
from kavka_pytest.faults import Faults

TOP = frozenset({Place.TOP})
PRODUCE = Request("Produce", 9, "orders", TOP, TOP)


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (lambda faults: faults.answer("produce", "X"), 'api: "produce" is not an API of Kafka; did you mean Produce?'),
        (lambda faults: faults.delay("Telephone", 5), 'api: "Telephone" is not an API of Kafka; write its name'),
        (
            lambda faults: faults.answer("Produce", "NOT_LEADER"),
            'error: "NOT_LEADER" is not an error of Kafka; did you mean NOT_LEADER_OR_FOLLOWER?',
        ),
        (lambda faults: faults.answer("Produce", "NONE"), 'error: "NONE" is not an error of Kafka'),
        (
            lambda faults: faults.answer("Fetch", "NOT_COORDINATOR", where="left"),
            'where: "left" is no place; write "top"',
        ),
        (lambda faults: faults.drop("Produce", nth=0), "nth: 0 is no place in a row; the first request is 1"),
        (lambda faults: faults.drop("Produce", times=0), "times: 0 is never; write a number from 1, or None for all"),
        (lambda faults: faults.drop("Produce", after="lunch"), 'after: "lunch" is neither; write "work" or "request"'),
        (lambda faults: faults.delay("Produce", 0), "ms: 0 is no delay; write a number of milliseconds above 0"),
        (lambda faults: faults.black_hole(api="Fetsch"), 'api: "Fetsch" is not an API of Kafka; did you mean Fetch?'),
    ],
)
def test_a_fault_that_cannot_be_is_refused(add: Callable[[Faults], None], words: str) -> None:
    faults = Faults()
    with pytest.raises(ValueError, match=re.escape(words)):
        add(faults)
    assert faults.unplayed == []


def test_what_was_played_and_what_was_not() -> None:
    faults = Faults()
    faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", nth=2)
    faults.drop("Fetch")
    for _ in range(3):
        faults.decide(PRODUCE)
    fault = "answer NOT_LEADER_OR_FOLLOWER for Produce, number 2"
    assert [str(one) for one in faults.played] == [f"{fault}: Produce v9 of client orders"]
    assert faults.unplayed == ["drop after the work for Fetch, number 1: no such request came"]


def test_a_fault_says_how_many_requests_it_has_counted() -> None:
    faults = Faults()
    faults.drop("Produce", nth=3)
    for _ in range(2):
        faults.decide(PRODUCE)
    assert faults.unplayed == ["drop after the work for Produce, number 3: 2 such requests came"]


def test_two_equal_faults_are_two() -> None:
    faults = Faults()
    for _ in range(2):
        faults.drop("Produce")
    faults.decide(PRODUCE)
    assert len(faults.unplayed) == 1


def test_cleared_faults_are_gone_and_what_holds_is_told() -> None:
    faults, told = Faults(), []
    faults.when_cleared(lambda: told.append(1))
    faults.black_hole()
    faults.clear()
    assert faults.decide(PRODUCE).rule is None
    assert (faults.unplayed, faults.played, told) == ([], [], [1])
