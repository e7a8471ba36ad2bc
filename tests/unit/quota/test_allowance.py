"""An allowance owes what was spent ahead, however its limit changes, and forgives no more than its burst."""

from kavka_broker.core.quota.allowance import Allowance
from kavka_broker.core.quota.rate import THROTTLE_MS_MAX


def test_it_begins_with_a_burst_and_then_owes() -> None:
    allowance = Allowance(250, 0)
    assert allowance.spend(250, 0, 1000.0) == 0
    assert allowance.spend(100, 0, 1000.0) == 100
    assert allowance.spend(100, 50, 1000.0) == 150


def test_a_long_silence_saves_no_more_than_a_burst() -> None:
    allowance = Allowance(250, 0)
    allowance.spend(1000, 0, 1000.0)
    assert allowance.spend(251, 3_600_000, 1000.0) == 1


def test_what_is_owed_is_owed_at_another_limit_too() -> None:
    allowance = Allowance(250, 0)
    allowance.spend(1250, 0, 1000.0)
    due = allowance.due
    assert allowance.rest_ms(due, 500, 1000.0) == 500
    allowance.advance(500, 1000.0)
    assert allowance.rest_ms(due, 500, 10.0) == 50_000, "500 bytes at 10 a second"
    allowance.advance(20_500, 10.0)
    assert allowance.rest_ms(due, 20_500, 3000.0) == 100, "300 bytes are left"


def test_a_limit_that_grows_gives_no_second_burst() -> None:
    allowance = Allowance(250, 0)
    allowance.spend(2, 0, 8.0)
    allowance.advance(1000, 8.0)
    assert allowance.spend(2, 1000, 8000.0) == 0, "what was saved at the lower limit is still there"
    assert allowance.spend(8, 1000, 8000.0) == 1


def test_nothing_at_all_is_waited_for_as_long_as_can_be_told() -> None:
    allowance = Allowance(250, 0)
    assert allowance.spend(1, 0, 0.0) == THROTTLE_MS_MAX
    assert allowance.rest_ms(allowance.due, 10**9, 5e-324) == THROTTLE_MS_MAX


def test_a_clock_that_goes_back_adds_nothing() -> None:
    allowance = Allowance(250, 1000)
    allowance.spend(1250, 1000, 1000.0)
    assert allowance.rest_ms(allowance.due, 0, 1000.0) == 1000


def test_nothing_is_lost_after_years_at_the_largest_limit() -> None:
    allowance = Allowance(250, 0)
    allowance.spend(1, 0, 2.0**62)
    years_ms = 10**11
    allowance.advance(years_ms, 2.0**62)
    due = allowance.due
    allowance.advance(years_ms, 1.0)
    allowance.spend(0, years_ms, 1.0)
    assert allowance.spend(3, years_ms, 1.0) == 2750
    assert allowance.rest_ms(allowance.due, years_ms + 2749, 1.0) == 1
    assert allowance.due > due
