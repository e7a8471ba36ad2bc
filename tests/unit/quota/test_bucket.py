"""The token bucket: the worked example of KIP-599 and what follows from it."""

import pytest

from kavka_broker.core.quota.bucket import TokenBucket
from kavka_broker.core.quota.rate import THROTTLE_MS_MAX, SampledRate, SampleWindow

HUNDRED_SECONDS = SampleWindow(100, 1000)


def test_worked_example_of_kip_599() -> None:
    bucket = TokenBucket(HUNDRED_SECONDS)

    assert bucket.burst(5.0) == 500.0
    assert bucket.spend(560, now_ms=0, limit=5.0) == -60.0
    assert bucket.throttle_ms(5.0) == 12_000
    assert bucket.refill(12_000, 5.0) == 0.0
    assert bucket.throttle_ms(5.0) == 0


def test_a_sampled_rate_would_stay_over_its_limit_for_as_long_as_the_burst_is_in_its_window() -> None:
    rate = SampledRate(HUNDRED_SECONDS)
    rate.record(560, now_ms=0)

    assert rate.measure(99_999) > 5.0
    assert rate.measure(100_000) == 0.0


def test_it_starts_full_and_never_holds_more_than_the_burst() -> None:
    bucket = TokenBucket(SampleWindow(11, 1000))

    assert bucket.refill(1_000_000, 2.0) == 22.0
    assert bucket.refill(9_000_000, 2.0) == 22.0
    assert bucket.spend(-50, 9_000_000, 2.0) == 22.0


def test_exactly_empty_is_not_exhausted() -> None:
    bucket = TokenBucket(SampleWindow(10, 1000))

    assert bucket.spend(10, 0, limit=1.0) == 0.0
    assert bucket.throttle_ms(1.0) == 0


def test_a_changed_limit_keeps_the_balance_within_the_new_burst() -> None:
    bucket = TokenBucket(SampleWindow(10, 1000))
    bucket.spend(20, 0, limit=10.0)  # 80 of 100 are left

    assert bucket.refill(0, limit=1.0) == 10.0
    assert bucket.refill(0, limit=10.0) == 10.0


def test_time_that_goes_back_gives_nothing_and_takes_nothing() -> None:
    bucket = TokenBucket(SampleWindow(10, 1000))
    bucket.spend(100, 10_000, limit=10.0)

    assert bucket.refill(1000, 10.0) == 0.0
    assert bucket.refill(11_000, 10.0) == 10.0


@pytest.mark.parametrize("limit", [0.0, 5e-324])
def test_a_limit_of_next_to_nothing_waits_as_long_as_the_wire_can_say(limit: float) -> None:
    bucket = TokenBucket(SampleWindow(10, 1000))
    bucket.spend(1, 0, limit)

    assert bucket.throttle_ms(limit) == THROTTLE_MS_MAX


def test_an_empty_bucket_is_not_exhausted_whatever_the_limit() -> None:
    assert TokenBucket(SampleWindow(11, 1000)).throttle_ms(0) == 0
