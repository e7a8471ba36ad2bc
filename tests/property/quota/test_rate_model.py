"""The sampled rate against a plain model of its rules, and what a throttled client can reach in the long run."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.core.quota.bucket import TokenBucket
from kavka_broker.core.quota.rate import SampledRate, SampleWindow

WINDOWS = st.builds(SampleWindow, st.integers(1, 12), st.sampled_from([100, 1000, 2000]))
STEPS = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 10_000), st.booleans()), max_size=60)


@dataclass
class Sample:
    start_ms: int
    last_ms: int
    value: int = 0


class Model:
    """The rules as they are said in words: every sum and minimum is taken again each time."""

    def __init__(self, window: SampleWindow) -> None:
        self.window = window
        self.samples: list[Sample] = []
        self.current = 0

    def record(self, value: int, now_ms: int) -> None:
        if not self.samples:
            self.samples.append(Sample(now_ms, now_ms))
        if now_ms - self.samples[self.current].start_ms >= self.window.size_ms:
            self.current = (self.current + 1) % (self.window.count + 1)
            self.samples[self.current : self.current + 1] = [Sample(now_ms, now_ms)]
        self.samples[self.current].value += value
        self.samples[self.current].last_ms = now_ms

    def measure(self, now_ms: int) -> tuple[int, int]:
        for index, sample in enumerate(self.samples):
            if now_ms - sample.last_ms >= self.window.span_ms:
                self.samples[index] = Sample(now_ms, now_ms)
        if not self.samples:
            self.samples.append(Sample(now_ms, now_ms))
        elapsed_ms = now_ms - min(sample.start_ms for sample in self.samples)
        while elapsed_ms // self.window.size_ms < self.window.count - 1:
            elapsed_ms += self.window.size_ms
        return sum(sample.value for sample in self.samples), max(elapsed_ms, 1)


@settings(max_examples=200)
@given(WINDOWS, STEPS)
def test_the_rate_is_that_of_the_model(window: SampleWindow, steps: list[tuple[int, int, bool]]) -> None:
    rate, model, now_ms = SampledRate(window), Model(window), 0
    for pause_ms, value, measured in steps:
        now_ms += pause_ms
        rate.record(value, now_ms)
        model.record(value, now_ms)
        if measured:
            total, window_ms = model.measure(now_ms)
            assert rate.measured_ms(now_ms) == window_ms
            assert rate.measure(now_ms) == total * 1000 / window_ms


@settings(max_examples=100)
@given(WINDOWS, st.lists(st.tuples(st.integers(0, 30_000), st.integers(-10_000, 10_000)), max_size=40))
def test_a_rate_is_never_negative(window: SampleWindow, steps: list[tuple[int, int]]) -> None:
    rate, now_ms = SampledRate(window), 0
    for pause_ms, value in steps:
        now_ms += pause_ms
        rate.record(value, now_ms)
        assert rate.measure(now_ms) >= 0
        assert rate.measured_ms(now_ms) >= 1


@settings(max_examples=60, deadline=None)
@given(
    limit=st.sampled_from([50_000, 1_048_576]),
    shares=st.lists(st.floats(0.05, 1), min_size=1, max_size=8),
    think_ms=st.integers(0, 200),
)
def test_a_client_that_waits_as_told_keeps_to_its_limit(limit: int, shares: list[float], think_ms: int) -> None:
    """Once its first window is over; for requests of up to one second's allowance (docs/explanation/quotas.md)."""
    rate, now_ms, sent, turn = SampledRate(SampleWindow()), 0, 0, 0
    while now_ms < 330_000:
        size = int(limit * shares[turn % len(shares)])
        turn += 1
        sent += size if now_ms >= 30_000 else 0
        now_ms += rate.charge(size, now_ms, limit) + think_ms
    assert sent <= limit * (now_ms - 30_000) / 1000 * 1.05


@settings(max_examples=100)
@given(
    limit=st.floats(0.5, 1000),
    steps=st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 500)), max_size=40),
)
def test_a_bucket_never_gives_more_than_burst_and_refill(limit: float, steps: list[tuple[int, int]]) -> None:
    bucket, now_ms, spent = TokenBucket(SampleWindow()), 0, 0
    for pause_ms, permits in steps:
        now_ms += pause_ms
        if bucket.refill(now_ms, limit) >= 0:
            spent += permits
            bucket.spend(permits, now_ms, limit)
        assert spent <= bucket.burst(limit) + limit * now_ms / 1000 + 500
        assert bucket.tokens <= bucket.burst(limit)
