"""How long a cleaning waits after what it has read and written."""

import pytest

from kavka_broker.core.cleaning.pace import Pace


def test_what_is_owed_is_paid_at_the_rate() -> None:
    pace = Pace(1_000)
    assert pace.wait_ms(100, 1_000) == 0
    pace.note(50, 100, 1_000)
    pace.note(30, 100, 1_000)
    assert pace.wait_ms(100, 1_000) == 800
    assert pace.wait_ms(100, 1_300) == 500
    assert pace.wait_ms(200, 1_400) == 150
    assert pace.wait_ms(200, 9_000) == 0


def test_time_without_a_debt_earns_nothing() -> None:
    pace = Pace(0)
    pace.note(10, 100, 5_000)
    assert pace.wait_ms(100, 5_000) == 100


@pytest.mark.parametrize(("rate", "wait_ms"), [(100, 1_000), (400, 250)])
def test_the_rate_of_now_counts(rate: float, wait_ms: float) -> None:
    pace = Pace(0)
    pace.note(100, 100, 0)
    assert pace.wait_ms(rate, 0) == wait_ms
