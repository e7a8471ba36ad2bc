"""The judge of consumer groups: commits of epochs that a member has left, of hand-written histories."""

from collections.abc import Callable

import pytest

from tests.sim.holdings import Held, Holdings

PLACE: Held = (b"\x01" * 16, 0)
LATER = 100.0


def first_had_it(record: Holdings) -> None:
    record.has("first", [PLACE], 1.0, LATER)


def second_got_it(record: Holdings) -> None:
    record.gives_up("first", [PLACE])
    record.has("second", [PLACE], 2.0, LATER)


def first_has_it_again(record: Holdings) -> None:
    """By the word of a coordinator that nobody vouches for, as it is stopping."""
    record.forgets("second")
    record.has("first", [PLACE], 3.0, None)


def committed_by_first(*history: Callable[[Holdings], None]) -> list[str]:
    record = Holdings()
    for event in history:
        event(record)
    attempt = record.register(PLACE).write(5, 4.0, generation=1, member_id="first")
    record.committed("first", PLACE, attempt, 4.5, is_left=True)
    return record.problems


def test_another_member_has_got_the_partition_since() -> None:
    [problem] = committed_by_first(first_had_it, second_got_it)
    assert problem == "stale-commit: first committed 01010101-0 in 1, second has it"


@pytest.mark.parametrize("history", [(first_had_it,), (first_had_it, second_got_it, first_has_it_again)])
def test_a_member_may_commit_in_an_epoch_since_which_it_has_had_it(history: list[Callable[[Holdings], None]]) -> None:
    assert committed_by_first(*history) == []
