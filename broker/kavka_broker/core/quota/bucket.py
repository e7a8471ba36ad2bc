"""A token bucket: an allowance that bursts may draw on in advance.

A single large burst would keep a sampled rate above its limit until the burst's sample expires. The bucket forgets
nothing and forgives steadily instead: it refills at the limit up to a `burst` of one whole window's worth, whatever is
spent is taken off, and the balance may go below zero once. While it is below, the quota is exhausted, and the client
waits until it is back at zero. It starts full.

Worked example (KIP-599): limit 5 a second, 100 samples of 1 s, so a burst of 500. Spending 560 leaves -60 tokens,
and at 5 a second that takes 12 s; the sampled rate would have asked for some 100 s.

It is the rule of `controller_mutation_rate`.
"""

from dataclasses import dataclass

from kavka_broker.core.quota.rate import THROTTLE_MS_MAX, SampleWindow


@dataclass(slots=True)
class TokenBucket:
    """A bucket of permits. `limit` is handed in with every call, because it may change while the balance stays."""

    window: SampleWindow
    tokens: float = 0
    updated_ms: int | None = None

    def burst(self, limit: float) -> float:
        return limit * self.window.span_ms / 1000

    def balance(self, now_ms: int, limit: float) -> float:
        """Return what the bucket holds now."""
        assert limit >= 0, limit
        if self.updated_ms is None:
            return self.burst(limit)
        return min(self.burst(limit), self.tokens + limit * max(now_ms - self.updated_ms, 0) / 1000)

    def refill(self, now_ms: int, limit: float) -> float:
        """Add the permits that have come in until now; returns the balance."""
        self.tokens = self.balance(now_ms, limit)
        self.updated_ms = now_ms if self.updated_ms is None else max(now_ms, self.updated_ms)
        return self.tokens

    def exhausted_ms(self, now_ms: int, limit: float) -> int:
        """Refill; returns the milliseconds until the balance is back at zero, 0 where it is."""
        self.refill(now_ms, limit)
        return self.throttle_ms(limit)

    def spend(self, permits: float, now_ms: int, limit: float) -> float:
        """Refill, then take `permits` off; returns the balance, below zero where the quota is exhausted."""
        self.tokens = min(self.burst(limit), self.refill(now_ms, limit) - permits)
        return self.tokens

    def throttle_ms(self, limit: float) -> int:
        """Milliseconds until the balance is back at zero."""
        if self.tokens >= 0:
            return 0
        if limit <= 0:
            return THROTTLE_MS_MAX
        return int(min(-self.tokens / limit * 1000 + 0.5, THROTTLE_MS_MAX))
