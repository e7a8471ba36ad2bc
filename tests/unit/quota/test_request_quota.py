"""Time on the loop under a quota: what is counted, how long a client waits, and what counts for nobody (KIP-124)."""

from kavka_broker.core.quota.entity import Entity
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.loop.slices import at_once
from kavka_broker.quotas.request_quota import RequestQuota

SECOND_NS = 1_000_000_000
MS_NS = 1_000_000


def limited(percentage: float) -> RequestQuota:
    quota = RequestQuota(SampleWindow())
    quota.update({Entity("alice"): percentage})
    return quota


def charge(quota: RequestQuota, user: str, loop_ns: int, now_ms: int = 0) -> int:
    """As a request does: it is counted, and charged where there is a limit."""
    sensor = quota.sensor_of(user, "etl", now_ms)
    sensor.used_total += loop_ns
    return 0 if sensor.limit is None else quota.charge(sensor, loop_ns, now_ms)


def test_ten_seconds_worth_pass_and_then_the_delay_brings_the_client_back_to_its_percentage() -> None:
    quota = limited(10.0)
    assert charge(quota, "alice", SECOND_NS, 0) == 0  # a tenth of ten seconds
    assert charge(quota, "alice", 50 * MS_NS, 0) == 500  # (10.5 - 10) / 10 * 10 s


def test_a_delay_is_at_most_one_sample_long() -> None:
    quota = limited(1.0)
    assert charge(quota, "alice", 10 * SECOND_NS, 0) == 1000


def test_what_sending_takes_counts_and_delays_only_the_next_request() -> None:
    quota = limited(10.0)
    quota.add(quota.sensor_of("alice", "etl", 0), SECOND_NS + 10 * MS_NS, 0)
    assert charge(quota, "alice", 0, 0) == 100


def test_exempt_time_counts_for_nobody() -> None:
    quota = limited(0.001)
    assert quota.charge(quota.exempt, 5 * SECOND_NS, 0) == 0
    assert charge(quota, "alice", 0, 0) == 0
    assert quota.exempt_percentage(0) == 50.0
    assert at_once(quota.usages(0))[0].used_total == 0


def test_a_client_without_a_quota_is_counted_and_never_waits() -> None:
    quota = limited(1.0)
    assert charge(quota, "bob", 100 * SECOND_NS, 0) == 0
    assert [line.used_total for line in at_once(quota.usages(0))] == [100 * SECOND_NS]


def test_the_long_run_share_is_the_percentage() -> None:
    """A client that asks without a pause, a millisecond of the loop each time, and waits as it is told."""
    quota, now_ms, used_ms = limited(25.0), 0, 0
    while now_ms < 120_000:
        used_ms += 1
        now_ms += 1 + charge(quota, "alice", MS_NS, now_ms)
    assert used_ms / now_ms <= 0.25 * (1 + 10 / 120) + 0.001  # ten seconds' worth more
    assert used_ms / now_ms >= 0.25
