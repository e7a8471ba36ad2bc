"""The sampled rate: the window rules one by one, and the worked example of the article on bandwidth quotas."""

import pytest

from kavka_broker.core.quota.rate import THROTTLE_MS_MAX, SampledRate, SampleWindow, throttle_ms

KAFKA = SampleWindow(11, 1000)


def test_the_first_burst_is_measured_over_ten_whole_samples() -> None:
    rate = SampledRate(KAFKA)

    rate.record(10_000, now_ms=5)

    assert rate.measured_ms(5) == 10_000
    assert rate.measure(5) == 1000.0


def test_missing_whole_samples_are_added_to_the_elapsed_time() -> None:
    rate = SampledRate(KAFKA)
    rate.record(1, now_ms=0)

    assert rate.measured_ms(999) == 999 + 10 * 1000
    assert rate.measured_ms(1000) == 1000 + 9 * 1000
    assert rate.measured_ms(2500) == 2500 + 8 * 1000


def test_the_window_grows_to_the_start_of_the_oldest_sample() -> None:
    rate = SampledRate(KAFKA)
    for second in range(11):
        rate.record(100, now_ms=second * 1000 + 500)

    assert rate.measure(10_500) == 1100 / 10
    assert rate.measured_ms(10_999) == 10_499


def test_a_sample_starts_with_its_first_record_not_on_a_grid() -> None:
    rate = SampledRate(SampleWindow(3, 1000))
    rate.record(1, now_ms=0)
    rate.record(2, now_ms=1700)  # the first sample is complete; the second starts here

    rate.record(4, now_ms=2600)  # 900 ms later: still the second

    assert rate.measured_ms(2600) == 2600
    assert rate.measure(2600) == pytest.approx(7 / 2.6)
    rate.record(8, now_ms=2700)
    assert rate.measured_ms(2999) == 2999


def test_a_sample_that_overlaps_the_window_is_kept() -> None:
    """Its start is older than the window, its last record is not."""
    rate = SampledRate(SampleWindow(2, 1000))
    rate.record(1, now_ms=0)
    rate.record(1, now_ms=900)
    rate.record(1, now_ms=1000)

    assert rate.measure(2899) == 3 / 2.899
    assert rate.measured_ms(2900) == 1900  # now the first is gone


def test_an_idle_client_is_forgotten_after_one_window() -> None:
    rate = SampledRate(KAFKA)
    rate.record(5_000_000, now_ms=0)

    assert rate.measure(10_999) > 0
    assert rate.measure(11_000) == 0


def test_a_window_of_two_samples_can_see_three() -> None:
    """That is why one more is kept: the ring never overwrites what still counts."""
    rate = SampledRate(SampleWindow(2, 1000))
    for second in range(3):
        rate.record(10**second, now_ms=second * 1000)
        rate.record(0, now_ms=second * 1000 + min(900, 2000 - second * 1000))

    assert rate.measure(2899) == 111 * 1000 / 2899


def test_a_negative_record_takes_back_what_was_recorded() -> None:
    rate = SampledRate(KAFKA)
    rate.record(700, now_ms=0)
    rate.record(300, now_ms=10)

    rate.record(-300, now_ms=10)

    assert rate.measure(10) == 700 / 10.01


def test_a_clock_that_goes_back_a_little_stands_still() -> None:
    rate = SampledRate(KAFKA)
    rate.record(1000, now_ms=60_000)

    rate.record(1000, now_ms=59_000)

    assert rate.measure(58_000) == 2000 / 10
    assert rate.measured_ms(49_000) == 10_000


def test_a_clock_that_was_set_back_makes_the_rate_start_again() -> None:
    rate = SampledRate(KAFKA)
    rate.record(1000, now_ms=60_000)
    rate.record(1000, now_ms=63_000)

    rate.record(500, now_ms=1000)

    assert rate.measure(1000) == 500 / 10
    assert rate.measured_ms(2000) == 10_000


def test_a_rate_at_the_limit_is_within_it() -> None:
    rate = SampledRate(KAFKA)

    assert rate.charge(10_000, 0, limit=1000.0) == 0
    assert rate.charge(1, 0, limit=1000.0) == 1


def test_the_wait_stretches_the_window_until_it_fits() -> None:
    """O * W / (W + X) = T."""
    waited = throttle_ms(rate=3000, limit=1000, window_ms=10_000)

    assert waited == 20_000
    assert 3000 * 10_000 / (10_000 + waited) == 1000


def test_the_wait_is_rounded_half_up() -> None:
    assert throttle_ms(rate=1000.25, limit=1000, window_ms=10_000) == 3  # 2.5
    assert throttle_ms(rate=1000.24, limit=1000, window_ms=10_000) == 2


@pytest.mark.parametrize(("rate", "limit"), [(1.0, 0.0), (1e18, 1e-9), (1.0, 5e-324)])
def test_the_wait_fits_the_wire(rate: float, limit: float) -> None:
    assert throttle_ms(rate, limit, 10_000) == THROTTLE_MS_MAX


def article(rate: SampledRate) -> int:
    """Five samples of 2 s: four at 2 MB/s, then one at 12 MB/s. Returns the end of the last."""
    for sample in range(4):
        rate.record(2, sample * 2000)
        rate.record(2, sample * 2000 + 1999)
    rate.record(24, 8000)
    return 10_000


def test_worked_example_of_the_article() -> None:
    """N = 5, T = 2 s, d = 2 MB/s: the window averages c = 4 MB/s.

    The article's D = W * (c - d) / c = 5 s is the share of each window that such a client spends waiting (the test
    below). The single wait after this window is Kafka's X = (c - d) / d * W = 10 s: 40 MB at 2 MB/s take 20 s.
    """
    rate = SampledRate(SampleWindow(5, 2000))

    now_ms = article(rate)

    assert rate.measured_ms(now_ms) == 10_000
    assert rate.measure(now_ms) == 4.0
    assert throttle_ms(rate.measure(now_ms), 2.0, rate.measured_ms(now_ms)) == 10_000


def test_the_share_of_time_spent_waiting_is_that_of_the_article() -> None:
    """A client of 4 MB/s under a limit of 2 MB/s waits (c - d) / c = half of the time."""
    rate = SampledRate(SampleWindow(5, 2000))
    now_ms = waiting_ms = 0
    while now_ms < 1_000_000:
        now_ms += 100
        waited = rate.charge(400_000, now_ms, limit=2_000_000.0)
        waiting_ms += waited
        now_ms += waited

    assert waiting_ms / now_ms == pytest.approx(0.5, abs=0.01)


def test_the_most_a_fetch_may_return_is_what_the_smallest_window_allows() -> None:
    assert KAFKA.value_max(1024.0) == 10 * 1024
    assert SampledRate(KAFKA).charge(KAFKA.value_max(1024.0), 0, limit=1024.0) == 0
    assert SampledRate(KAFKA).charge(KAFKA.value_max(1024.0) + 1, 0, limit=1024.0) > 0


def test_a_client_that_sends_nothing_never_waits() -> None:
    assert throttle_ms(0, 0, 1000) == 0
