"""Every state that a token bucket can get into within eight steps, judged by what the rule says in words.

Limits and pauses are binary fractions, so that no figure is rounded and equal states are found to be equal.
"""

from collections.abc import Iterator
from copy import copy

from kavka_broker.core.quota.bucket import TokenBucket
from kavka_broker.core.quota.rate import SampleWindow

DEPTH = 8
WINDOW = SampleWindow(3, 1000)
LIMITS = (0.5, 4.0)
PAUSES_MS = (0, 125, 1000, 60_000)
PERMITS = (0, 1, 5, 30)
STATES_MIN = 3_000  # fewer would mean that steps lead nowhere

State = tuple[float, float, bool]  # tokens, the limit, whether nothing was spent ahead of time


def test_every_state_within_eight_steps_is_what_the_rule_says() -> None:
    begin = TokenBucket(WINDOW)
    begin.refill(0, LIMITS[0])
    seen: set[State] = {(begin.tokens, LIMITS[0], True)}
    edge = list(seen)
    for _ in range(DEPTH):
        found = dict.fromkeys(state for before in edge for state in steps(*before))
        edge = [state for state in found if state not in seen]
        seen.update(edge)
    assert len(seen) > STATES_MIN
    for state in seen:
        judge(*state)


def steps(tokens: float, limit: float, obedient: bool) -> Iterator[State]:
    """What a pause, another limit and permits lead to, each judged against the sum that it should be."""
    for pause_ms in PAUSES_MS:
        for other in LIMITS:
            bucket = TokenBucket(WINDOW, tokens, 0)
            refilled = bucket.refill(pause_ms, other)
            assert refilled == min(bucket.burst(other), tokens + other * pause_ms / 1000), "it comes in at the limit"
            for permits in PERMITS:
                spent = copy(bucket)
                assert spent.spend(permits, pause_ms, other) == refilled - permits, "what is spent is taken off, once"
                yield spent.tokens, other, obedient and (refilled >= 0 or permits == 0)


def judge(tokens: float, limit: float, obedient: bool) -> None:
    """What holds of a state, however it came about."""
    bucket = TokenBucket(WINDOW, tokens, 0)
    assert tokens <= bucket.burst(limit), "no more is saved than a burst"
    assert not obedient or tokens >= -max(PERMITS), "who waits as told owes no more than one request"
    wait_ms = bucket.exhausted_ms(0, limit)
    assert (wait_ms == 0) is (tokens >= 0), "exhausted is below zero"
    if wait_ms:
        assert copy(bucket).refill(wait_ms, limit) >= -limit / 1000, "the wait that is told is long enough"
        assert copy(bucket).refill(wait_ms - 1, limit) < 0, "and not longer"
