"""How fast the log cleaner may read and write, whatever the limit changes to meanwhile.

What was read and written is owed, and time pays it at the limit's rate. All cleanings owe together.
"""


class Pace:
    """`owed_bytes` as of `seen_ms`, which only goes on. The rate is given with each call: it may be another one now."""

    __slots__ = ("owed_bytes", "seen_ms")

    def __init__(self, now_ms: float) -> None:
        self.owed_bytes = 0.0
        self.seen_ms = now_ms

    def note(self, size_bytes: int, rate: float, now_ms: float) -> None:
        assert size_bytes >= 0, size_bytes
        self._pay(rate, now_ms)
        self.owed_bytes += size_bytes

    def wait_ms(self, rate: float, now_ms: float) -> float:
        """How long until nothing is owed, at this rate."""
        self._pay(rate, now_ms)
        return self.owed_bytes * 1000 / rate

    def _pay(self, rate: float, now_ms: float) -> None:
        assert rate > 0, rate
        self.owed_bytes = max(0.0, self.owed_bytes - rate * (now_ms - self.seen_ms) / 1000)
        self.seen_ms = now_ms
