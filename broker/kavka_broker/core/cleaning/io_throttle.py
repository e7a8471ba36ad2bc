"""How fast the log cleaner may read and write, whatever the limit changes to meanwhile.

What was read and written is owed, and time pays it at the limit's rate. All cleanings owe together.
"""


class IoThrottle:
    """Bytes that cleaning owes as of `seen_ms`, a time that only rises. Each call gives the rate: it may change."""

    __slots__ = ("owed_bytes", "seen_ms")

    def __init__(self, now_ms: float) -> None:
        self.owed_bytes = 0.0
        self.seen_ms = now_ms

    def note(self, size_bytes: int, rate: float, now_ms: float) -> None:
        assert size_bytes >= 0, size_bytes
        self._pay(rate, now_ms)
        self.owed_bytes += size_bytes

    def wait_ms(self, rate: float, now_ms: float) -> float:
        """Milliseconds until no bytes are owed, at this rate."""
        self._pay(rate, now_ms)
        return self.owed_bytes * 1000 / rate

    def _pay(self, rate: float, now_ms: float) -> None:
        assert rate > 0, rate
        assert now_ms >= self.seen_ms, f"{now_ms} comes after {self.seen_ms}"
        self.owed_bytes = max(0.0, self.owed_bytes - rate * (now_ms - self.seen_ms) / 1000)
        self.seen_ms = now_ms
