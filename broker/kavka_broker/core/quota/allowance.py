"""What a broker's part of a budget lets through: bytes come in at the limit, and what is spent ahead of them is owed.

A sampled rate forgives: who has been silent may catch up on a whole window, and a rate that begins again knows of
nothing that was used before. On one broker that is Kafka's. Over several, whose parts move, it adds up: what one has
let through another would let through again. An allowance forgives no more than `burst_ms` of its limit, and owes what
it owes however its limit changes. So over any time T a broker lets through at most

    what its limits allow in T, a burst, and one request of each connection.

Bytes are counted in thousandths, as whole numbers: nothing is lost however long it goes on.
"""

from kavka_broker.core.quota.rate import THROTTLE_MS_MAX


class Allowance:
    """The allowance of one share. `limit` is handed in with every call, and has held since the last one."""

    __slots__ = ("_accrued", "_burst_ms", "_spent", "_updated_ms")

    def __init__(self, burst_ms: int, now_ms: int) -> None:
        assert burst_ms >= 1, burst_ms
        self._burst_ms = burst_ms
        self._accrued = 0
        self._spent: int | None = None  # nobody has spent yet: a burst is there
        self._updated_ms = now_ms

    @property
    def due(self) -> int:
        """The mark at which all that has been spent by now has come in (`rest_ms`)."""
        return self._accrued if self._spent is None else self._spent

    def advance(self, now_ms: int, limit: float) -> None:
        """Add what has come in until now; call it before the limit changes."""
        assert limit >= 0, limit
        self._accrued += int(limit) * max(now_ms - self._updated_ms, 0)
        self._updated_ms = max(now_ms, self._updated_ms)

    def spend(self, size_bytes: int, now_ms: int, limit: float) -> int:
        """Take bytes off; returns the milliseconds until they have come in, 0 while there are some left."""
        assert size_bytes >= 0, f"{-size_bytes} bytes would be given back"
        self.advance(now_ms, limit)
        saved = self._accrued - int(limit) * self._burst_ms
        self._spent = size_bytes * 1000 + (saved if self._spent is None else max(self._spent, saved))
        return self.rest_ms(self._spent, now_ms, limit)

    def forgive(self, owed_ms_max: int, now_ms: int, limit: float) -> None:
        """Owe no more than comes in within so long."""
        assert owed_ms_max >= 0, owed_ms_max
        self.advance(now_ms, limit)
        if self._spent is not None:
            self._spent = min(self._spent, self._accrued + int(limit) * owed_ms_max)

    def rest_ms(self, due: int, now_ms: int, limit: float) -> int:
        """The milliseconds until a mark is reached at this limit."""
        self.advance(now_ms, limit)
        owed = due - self._accrued
        if owed <= 0:
            return 0
        return min(-(-owed // int(limit)), THROTTLE_MS_MAX) if limit >= 1 else THROTTLE_MS_MAX
