"""How fast a client is, and how long it has to wait when it is too fast.

Traffic is counted in samples of `quota.window.size.seconds`. `quota.window.num` of them make the window, the last one
being filled (11 of 1 s by default, so ten whole ones); one more is kept, because the oldest reaches over the window's
edge. The rules, as Apache Kafka's `Rate` has them:

- A sample ends with the first record that comes at least its size after its start; the next starts at that record, not
  on a grid. The ring overwrites the oldest.
- A sample whose last record is as old as the whole window is emptied and starts again.
- rate = total of all samples / measured window. The measured window reaches from the start of the oldest sample until
  now; where it holds fewer whole samples than `count - 1`, the missing ones are added. So a client that starts with a
  burst is measured over ten seconds and not over the millisecond since its first request, and it may send ten seconds'
  worth at once before it is throttled. `first_burst_ms` makes that less: the measured window is then at least so long.

A client over its limit T at rate O waits X = (O - T) / T * W: the measured window W, stretched by X, holds no more than
T allows. X has no upper bound for bandwidth; Kafka caps it at one sample for request time and connection rates.

Time never goes back in here. A clock that does so by less than a window is taken to stand still; one that goes back
further (it was set) makes the rate start again, or a client would be throttled until the clock has caught up.
"""

from dataclasses import dataclass
from math import inf

THROTTLE_MS_MAX = 2**31 - 1  # throttle_time_ms is an int32 on the wire


@dataclass(frozen=True, slots=True)
class SampleWindow:
    """`quota.window.num` samples of `quota.window.size.seconds`."""

    count: int = 11
    size_ms: int = 1000
    first_burst_ms: int | None = None  # None is Kafka's: all whole samples' worth

    def __post_init__(self) -> None:
        assert self.count >= 1, self
        assert self.size_ms >= 1, self
        assert self.first_burst_ms is None or self.first_burst_ms >= 1, self

    @property
    def span_ms(self) -> int:
        return self.count * self.size_ms

    def value_max(self, limit: float) -> float:
        """The largest value recorded at once without a throttle: the limit over the smallest window."""
        whole_ms = (self.count - 1) * self.size_ms
        return limit * (whole_ms if self.first_burst_ms is None else min(self.first_burst_ms, whole_ms)) / 1000

    def least_ms(self, elapsed_ms: int) -> int:
        """The time that is measured over, where the oldest sample began so long ago."""
        if self.first_burst_ms is not None and self.first_burst_ms < (self.count - 1) * self.size_ms:
            return max(elapsed_ms, self.first_burst_ms)
        missing = self.count - 1 - elapsed_ms // self.size_ms
        return elapsed_ms + missing * self.size_ms if missing > 0 else elapsed_ms


class SampledRate:
    """A sampled rate. Starts with its first record.

    The three lists are the ring. `_total`, `_oldest_ms` and `_purge_at_ms` are derived from them so that a record in
    a sample that is open costs no loop; they are made again whenever a sample is emptied, about once a second.
    """

    __slots__ = (
        "_current",
        "_last_ms",
        "_now_ms",
        "_oldest_ms",
        "_purge_at_ms",
        "_starts_ms",
        "_total",
        "_values",
        "window",
    )

    def __init__(self, window: SampleWindow) -> None:
        self.window = window
        self._starts_ms: list[int] = []
        self._last_ms: list[int] = []
        self._values: list[float] = []
        self._current = 0
        self._total: float = 0
        self._oldest_ms = 0
        self._purge_at_ms: float = inf
        self._now_ms = 0

    def record(self, value: float, now_ms: int) -> None:
        """Record `value`; a negative one takes back what was recorded before."""
        if now_ms < self._now_ms:
            now_ms = self._catch_up(now_ms)
        self._now_ms = now_ms
        if not self._starts_ms or now_ms - self._starts_ms[self._current] >= self.window.size_ms:
            self._begin_sample(now_ms)
        current = self._current
        self._values[current] += value
        self._total += value
        self._last_ms[current] = now_ms

    def measure(self, now_ms: int) -> float:
        """The rate per second."""
        window_ms = self.measured_ms(now_ms)
        return max(self._total, 0) * 1000 / window_ms

    def measured_ms(self, now_ms: int) -> int:
        """The window W of the rate, in milliseconds."""
        if now_ms < self._now_ms:
            now_ms = self._catch_up(now_ms)
        self._now_ms = now_ms
        if not self._starts_ms:
            self._begin_sample(now_ms)
        elif now_ms >= self._purge_at_ms:
            self._purge(now_ms)
        return max(self.window.least_ms(now_ms - self._oldest_ms), 1)

    def charge(self, value: float, now_ms: int, limit: float) -> int:
        """Record the value, and return the milliseconds that the client has to wait: 0 while it keeps to the limit."""
        assert limit >= 0, limit
        self.record(value, now_ms)
        window_ms = self.measured_ms(now_ms)
        rate = self._total * 1000 / window_ms
        return throttle_ms(rate, limit, window_ms) if rate > limit else 0

    def _catch_up(self, now_ms: int) -> int:
        assert now_ms < self._now_ms, f"{now_ms} is not in front of {self._now_ms}"
        if self._now_ms - now_ms <= self.window.span_ms:
            return self._now_ms
        for ring in (self._starts_ms, self._last_ms, self._values):
            ring.clear()
        return now_ms

    def _begin_sample(self, now_ms: int) -> None:
        following = (self._current + 1) % (self.window.count + 1) if self._starts_ms else 0
        if following == len(self._starts_ms):
            self._starts_ms.append(now_ms)
            self._last_ms.append(now_ms)
            self._values.append(0)
        else:
            self._empty(following, now_ms)
        self._current = following
        assert len(self._starts_ms) == len(self._last_ms) == len(self._values), "a ring is longer than the others"
        assert len(self._values) <= self.window.count + 1, f"{len(self._values)} samples of {self.window}"
        self._derive()

    def _purge(self, now_ms: int) -> None:
        expired_ms = now_ms - self.window.span_ms
        for index, last_ms in enumerate(self._last_ms):
            if last_ms <= expired_ms:
                self._empty(index, now_ms)
        self._derive()

    def _empty(self, index: int, now_ms: int) -> None:
        assert now_ms >= self._last_ms[index], f"{now_ms} is before {self._last_ms[index]}"
        self._starts_ms[index] = self._last_ms[index] = now_ms
        self._values[index] = 0

    def _derive(self) -> None:
        assert len(self._starts_ms) == len(self._last_ms) == len(self._values), "the ring is one list in three"
        self._total = sum(self._values)
        self._oldest_ms = min(self._starts_ms)
        self._purge_at_ms = min(self._last_ms) + self.window.span_ms


def throttle_ms(rate: float, limit: float, window_ms: int) -> int:
    """The throttle X = (O - T) / T * W, rounded half up; nothing at all is allowed where the limit is zero."""
    assert window_ms >= 1, window_ms
    if rate <= limit:
        return 0
    if limit <= 0:
        return THROTTLE_MS_MAX
    return int(min((rate - limit) / limit * window_ms + 0.5, THROTTLE_MS_MAX))  # a tiny limit makes it infinite
