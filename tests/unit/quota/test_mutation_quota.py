"""How many partitions may be created and deleted: what is refused, what only waits, and what is counted (KIP-599)."""

from dataclasses import dataclass

import pytest

from kavka_broker.core.quota.entity import Entity
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.quotas.mutation_quota import MutationQuota, Mutations

LIMIT = 5.0
BURST = 50  # of ten samples of a second


@dataclass
class Clock:
    time_ms: float = 0.0

    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> float:
        return self.time_ms


class Quota:
    """A quota of alice, at a time that the test sets."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.of_clients = MutationQuota(SampleWindow(10, 1000))
        self.of_clients.update({Entity("alice"): LIMIT})

    def begin(self, *, strict: bool, user: str = "alice") -> Mutations:
        return self.of_clients.begin(user, "etl", self.clock, strict=strict)

    def delay_of(self, mutations: Mutations) -> int:
        return self.of_clients.finish(mutations, int(self.clock.time_ms))


def is_refused(mutations: Mutations, partitions: int) -> bool:
    try:
        mutations.record(partitions)
    except BrokerError as reason:
        return reason.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    return False


def test_the_topic_that_empties_the_bucket_passes_and_the_next_is_refused() -> None:
    quota = Quota()
    request = quota.begin(strict=True)
    assert not is_refused(request, BURST + 10)
    assert quota.delay_of(request) == 0, "who is not refused does not wait"
    later = quota.begin(strict=True)
    assert is_refused(later, 1)
    assert later.taken == 0
    assert quota.delay_of(later) == 2000  # 10 too many, at 5 a second


def test_an_old_client_is_never_refused_and_waits_for_all_that_it_has_taken() -> None:
    quota = Quota()
    request = quota.begin(strict=False)
    request.record(BURST + 10)
    request.record(5)
    assert quota.delay_of(request) == 3000


def test_the_delay_runs_while_the_records_are_committed() -> None:
    quota = Quota()
    request = quota.begin(strict=False)
    request.record(BURST + 10)
    quota.clock.time_ms = 1500
    assert quota.delay_of(request) == 500
    quota.clock.time_ms = 2500
    assert quota.delay_of(request) == 0


@pytest.mark.parametrize("strict", [True, False])
def test_the_bucket_is_refilled_at_the_limit(strict: bool) -> None:
    quota = Quota()
    quota.begin(strict=strict).record(BURST + 10)
    quota.clock.time_ms = 1999
    assert is_refused(quota.begin(strict=True), 1)
    quota.clock.time_ms = 2000
    assert not is_refused(quota.begin(strict=True), 1)


def test_the_long_run_rate_is_the_limit() -> None:
    quota, taken = Quota(), 0
    for time_ms in range(0, 600_000, 100):
        quota.clock.time_ms = time_ms
        request = quota.begin(strict=True)
        if not is_refused(request, 3):
            taken += 3
    assert LIMIT * 600 <= taken <= LIMIT * 600 + BURST + 3


def test_each_request_is_counted_once_and_shown_with_what_is_left() -> None:
    quota = Quota()
    request = quota.begin(strict=True)
    request.record(BURST)
    request.record(20)
    assert is_refused(request, 1)
    assert is_refused(request, 1)
    quota.delay_of(request)
    (line,) = at_once(quota.of_clients.usages(0))
    assert (line.used_total, line.throttled_requests_total, line.tokens) == (BURST + 20, 1, -20.0)
    assert line.rate == 70 / 9


def test_a_client_without_a_quota_is_counted_and_never_refused() -> None:
    quota = Quota()
    request = quota.begin(strict=True, user="bob")
    request.record(100_000)
    request.record(1)
    assert quota.delay_of(request) == 0
    (line,) = at_once(quota.of_clients.usages(0))
    assert (line.used_total, line.tokens) == (100_001, None)
