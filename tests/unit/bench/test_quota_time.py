"""What a bench of percentages makes of its readings."""

import pytest

from bench.quota_time import of_rates, of_sums, rates

LIMIT = 0.1  # of the time
IN_WAVES = [(float(at), LIMIT * 10 * (at // 10 + 1)) for at in range(61)]
"""Ten seconds' worth at once, every ten seconds."""


def test_a_client_that_moves_in_waves_reaches_its_limit_wherever_the_run_ends() -> None:
    for end in (45, 50, 55, 60):
        assert of_sums(IN_WAVES[:end], LIMIT, 0, 15)["of_limit_later"] == pytest.approx(1.0)


def test_what_is_ahead_of_the_limit_at_most_is_the_burst() -> None:
    assert of_sums(IN_WAVES, LIMIT, 0, 15)["burst_seconds"] == pytest.approx(10.0)
    late = [(at + 3, taken) for at, taken in IN_WAVES]
    assert of_sums(late, LIMIT, 0, 15)["burst_seconds"] == pytest.approx(7.0)


def test_a_rate_waits_for_its_window() -> None:
    assert next(at for at, _ in rates(IN_WAVES)) == 10.0
    assert [rate for _, rate in rates([(0.0, 0.0), (5.0, 1.0), (10.0, 3.0), (15.0, 6.0)])] == pytest.approx([0.3, 0.5])


def test_of_rates_over_a_window_the_first_tell_the_burst() -> None:
    readings = [(100.5, 10.0), (101.5, 11.0), (111.5, 40.0), (115.5, 9.0), (116.5, 11.0)]
    assert of_rates(readings, 10, 100, 15) == pytest.approx({"of_limit_later": 1.0, "burst_seconds": 9.5})
