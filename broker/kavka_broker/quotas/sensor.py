"""What is known of one share: the clients that draw on the same allowance.

Counters are plain numbers on slotted objects; nothing on the path of a request touches a metrics library. They are
read when somebody asks (`runtime.metrics`). Traffic is counted for clients without a quota as well, since whoever
wants to set one needs to know what is used today; only the sampled rate waits until there is a limit to hold it
against.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from kavka_broker.core.quota.allowance import Allowance
from kavka_broker.core.quota.bucket import TokenBucket
from kavka_broker.core.quota.rate import SampledRate, SampleWindow
from kavka_broker.core.quota.resolve import Effective, Share

PART_DELAY_MS_MAX = 2_000
"""A connection under a part of a budget asks again after so long at the most."""


class HeldTime:
    """The time for which a share's connections are held back; those that still are count until now.

    Each connection counts for itself, and never for more than the time that goes by: the delays of several
    requests overlap, the real wait does not. In whole milliseconds: a sum of fractions could fall by
    the last digit, which a counter must not.
    """

    __slots__ = ("_any_ms", "_any_since_ms", "_offset_ms", "connections")

    def __init__(self) -> None:
        self.connections = 0
        self._offset_ms = 0
        self._any_ms = 0
        self._any_since_ms = 0

    def begin(self, now_ms: int) -> None:
        """Count one more held connection."""
        if not self.connections:
            self._any_since_ms = now_ms
        self.connections += 1
        self._offset_ms -= now_ms

    def end(self, now_ms: int) -> None:
        """Count one held connection less."""
        assert self.connections, "nobody is held"
        self.connections -= 1
        self._offset_ms += now_ms
        if not self.connections:
            self._any_ms += now_ms - self._any_since_ms

    def total_ms(self, now_ms: int) -> int:
        return self.connections * now_ms + self._offset_ms

    def any_ms(self, now_ms: int) -> int:
        """Return the time in which at least one connection was held: never more than the time that goes by."""
        return self._any_ms + (now_ms - self._any_since_ms if self.connections else 0)

    def reset(self, now_ms: int) -> None:
        """Count from zero again."""
        self._offset_ms -= self.total_ms(now_ms)

    def rest_ms(self, now_ms: int) -> int:
        """Return how long to wait still, after the delay that was told."""
        del now_ms
        return 0


class Holding:
    """The times in which a held connection counts: of its share, of the entity with the quota, of the quota's type."""

    __slots__ = ("_rest_ms", "_times")

    def __init__(self, *times: HeldTime, rest_ms: Callable[[int], int] | None = None) -> None:
        self._times = times
        self._rest_ms = rest_ms

    def rest_ms(self, now_ms: int) -> int:
        """Return how long to wait still, after the delay that was told."""
        return 0 if self._rest_ms is None else self._rest_ms(now_ms)

    def begin(self, now_ms: int) -> None:
        """Count one more held connection."""
        for time in self._times:
            time.begin(now_ms)

    def end(self, now_ms: int) -> None:
        """Count one held connection less, where it began, whatever quota applies by now."""
        for time in self._times:
            time.end(now_ms)


class Sensor:
    """Counters and rate of one share."""

    __slots__ = (
        "allowance",
        "bucket",
        "client",
        "delays",
        "demand",
        "effective",
        "found_in",
        "held",
        "held_until_ms",
        "is_named",
        "last_used_ms",
        "limit",
        "rate",
        "room_bytes",
        "share",
        "throttled_requests_total",
        "used_total",
    )

    def __init__(self, share: Share | None, client: tuple[str, str]) -> None:
        self.share = share
        self.client = client  # the client that came first stands for all of the share
        self.is_named = False
        self.room_bytes = 0  # what it has taken of the room for names
        self.found_in = 0  # which of the changes of limits its own was found after
        self.effective: Effective | None = None
        self.limit: float | None = None
        self.rate: SampledRate | None = None
        self.bucket: TokenBucket | None = None
        self.allowance: Allowance | None = None  # instead of the rate, under a part of a budget
        self.delays: Delays | None = None
        self.demand: Demand | None = None
        self.held_until_ms = 0
        self.last_used_ms = 0.0
        self.held = HeldTime()
        self.reset_counters(0)

    def reset_counters(self, now_ms: int) -> None:
        self.used_total = 0
        self.throttled_requests_total = 0
        self.held.reset(now_ms)

    def apply(self, effective: Effective | None, window: SampleWindow) -> None:
        """Take over a limit that was set, changed or taken away. What was recorded stays."""
        limit = None if effective is None else effective.limit
        if limit != self.limit:
            self.held_until_ms = 0
        self.effective, self.limit = effective, limit
        if limit is not None and self.rate is None:
            self.rate = SampledRate(window)

    def rest_of(self) -> Callable[[int], int] | None:
        """Return what tells how long a client that is held from now on has to wait still, at a moment: its part of a
        budget may have changed by then. None where nothing changes.
        """
        if (allowance := self.allowance) is None:
            return None
        due = allowance.due

        def rest_ms(now_ms: int) -> int:
            if self.allowance is not allowance or self.limit is None:
                return 0
            return min(allowance.rest_ms(due, now_ms, self.limit), PART_DELAY_MS_MAX)

        return rest_ms

    def tokens(self, now_ms: int) -> float | None:
        """Return what the bucket holds; None where there is none, or no limit."""
        return None if self.bucket is None or self.limit is None else self.bucket.balance(now_ms, self.limit)

    def throttled(self, delay_ms: int, now_ms: int, window: SampleWindow) -> None:
        """Count a request of this share that has to wait."""
        self.throttled_requests_total += 1
        if self.demand is None:
            self.demand = Demand()
        self.demand.note(self.held, now_ms, window)
        if self.delays is None:
            self.delays = Delays(SampledRate(window), SampledRate(window))
        self.delays.total_ms.record(delay_ms, now_ms)
        self.delays.requests.record(1, now_ms)


HELD_SHARE_MAX = 0.99


class Demand:
    """How much of its time a share was held back lately, which says what it would use if it was not.

    A client that is held for half of the time and uses 1 MiB/s sends at 2 MiB/s while it may. The held time of a
    connection counts over as many connections as were held at once.
    """

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks: deque[tuple[int, int, int]] = deque()

    def note(self, held: HeldTime, now_ms: int, window: SampleWindow) -> None:
        """Remember the held time as a request is throttled, once in each sample of the window."""
        if self._marks and now_ms - self._marks[-1][0] < window.size_ms:
            return
        self._marks.append((now_ms, held.total_ms(now_ms), held.connections + 1))
        if len(self._marks) > window.count:
            self._marks.popleft()

    def estimate(self, rate: float, held: HeldTime, now_ms: int, window: SampleWindow) -> float:
        """Return the rate that the share would have, with this one, if nothing held it back."""
        while self._marks and now_ms - self._marks[0][0] > window.span_ms:
            self._marks.popleft()
        if not self._marks:
            return rate
        since_ms, total_ms, _ = self._marks[0]
        connections = max(count for _, _, count in self._marks)
        share = (held.total_ms(now_ms) - total_ms) / max((now_ms - since_ms) * connections, 1)
        return rate / (1 - min(max(share, 0.0), HELD_SHARE_MAX))


@dataclass(slots=True)
class Delays:
    """Delays of the last window, for their average."""

    total_ms: SampledRate
    requests: SampledRate

    def average_ms(self, now_ms: int) -> float:
        requests = self.requests.measure(now_ms)
        return self.total_ms.measure(now_ms) / requests if requests else 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What one share has used until now, in the unit of its quota, and its limit."""

    user: str  # "" where any user is meant
    client_id: str  # "" where any client id is meant
    used_total: int = 0
    held_ms_total: int = 0
    throttled_requests_total: int = 0
    effective: Effective | None = None
    rate: float | None = None  # only under a quota
    throttle_ms_average: float = 0.0  # over the last window
    tokens: float | None = None  # only of a quota that is a token bucket
    demand: float | None = None  # an estimate, only under a quota


OTHER = "__other__"  # the label of all that have no series of their own
