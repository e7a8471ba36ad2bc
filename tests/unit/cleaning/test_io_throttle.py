"""How long a cleaning waits after what it has read and written."""

import pytest

from kavka_broker.core.cleaning.io_throttle import IoThrottle


def test_what_is_owed_is_paid_at_the_rate() -> None:
    throttle = IoThrottle(1_000)
    assert throttle.wait_ms(100, 1_000) == 0
    throttle.note(50, 100, 1_000)
    throttle.note(30, 100, 1_000)
    assert throttle.wait_ms(100, 1_000) == 800
    assert throttle.wait_ms(100, 1_300) == 500
    assert throttle.wait_ms(200, 1_400) == 150
    assert throttle.wait_ms(200, 9_000) == 0


def test_time_without_a_debt_earns_nothing() -> None:
    throttle = IoThrottle(0)
    throttle.note(10, 100, 5_000)
    assert throttle.wait_ms(100, 5_000) == 100


@pytest.mark.parametrize(("rate", "wait_ms"), [(100, 1_000), (400, 250)])
def test_the_rate_of_now_counts(rate: float, wait_ms: float) -> None:
    throttle = IoThrottle(0)
    throttle.note(100, 100, 0)
    assert throttle.wait_ms(rate, 0) == wait_ms
