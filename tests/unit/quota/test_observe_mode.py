"""Observed limits hold nobody back and say for how long they would; the first burst and the demand."""

import pytest

from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_broker.core.quota.rate import SampledRate, SampleWindow
from kavka_broker.loop.slices import at_once
from kavka_broker.quotas.client_quotas import PRODUCE, ClientQuotas
from kavka_broker.quotas.entity_usage import EntityUsage
from kavka_broker.quotas.observe_mode import WouldBeHeld
from kavka_broker.quotas.sensor import Demand, HeldTime

ALICE, BOB = Entity("alice"), Entity("bob")
PRODUCER, CONSUMER = "producer_byte_rate", "consumer_byte_rate"


def lines(quotas: ClientQuotas, quota_type: str, now_ms: int) -> dict[Entity, EntityUsage]:
    found = at_once(quotas.observed[quota_type].observed(now_ms))
    return {line.entity: line for line in found if isinstance(line.entity, Entity)}


def test_an_observed_limit_delays_nothing_and_counts_the_time() -> None:
    quotas = ClientQuotas()
    quotas.update({}, {PRODUCER: {ALICE: 1000.0}, CONSUMER: {ALICE: 1000.0}})

    assert quotas.produce("alice", "a", 12_000, 0) == 0
    assert quotas.fetch("alice", "a", 13_000, 0) == 0
    assert quotas.fetch_clamp("alice", "a", 10**9, 0) == 10**9

    assert lines(quotas, "produce", 1500)[ALICE].held_ms == 1500
    assert lines(quotas, "produce", 9000)[ALICE].held_ms == 2000
    assert lines(quotas, "fetch", 9000)[ALICE].held_ms == 3000
    assert lines(quotas, "produce", 9000)[ALICE].limit == 1000.0


def test_what_a_real_quota_withholds_is_not_observed() -> None:
    quotas = ClientQuotas()
    quotas.update({CONSUMER: {ALICE: 1000.0}}, {CONSUMER: {Entity("alice", DEFAULT): 500.0}})
    assert quotas.fetch("alice", "a", 5_000, 0) == 0
    assert quotas.fetch("alice", "a", 8_000, 0) > 0
    assert lines(quotas, "fetch", 0)[Entity("alice", DEFAULT)].usage == 500.0


def test_an_observed_limit_is_resolved_among_those_in_force() -> None:
    quotas = ClientQuotas()
    quotas.update({PRODUCER: {Entity("alice", "a"): 1e9}}, {PRODUCER: {ALICE: 1000.0}})
    quotas.produce("alice", "a", 10**6, 0)  # its own limit, of level 1, wins
    quotas.produce("alice", "b", 12_000, 0)
    assert lines(quotas, "produce", 60_000)[ALICE].held_ms == 2000


def test_an_observed_limit_beside_one_in_force_leaves_that_alone() -> None:
    quotas = ClientQuotas()
    quotas.update({PRODUCER: {ALICE: 1000.0}}, {PRODUCER: {ALICE: 500.0}})
    assert quotas.produce("alice", "a", 12_000, 0) == 2000
    quotas.update({PRODUCER: {ALICE: 1000.0}})
    assert not lines(quotas, "produce", 0)
    assert quotas.produce("alice", "a", 0, 0) == 2000


def test_delays_that_overlap_count_once() -> None:
    held = WouldBeHeld()
    held.delay(1000, 0)
    held.delay(500, 200)
    held.delay(1000, 500)
    assert [held.total_ms(now_ms) for now_ms in (500, 1500, 9000)] == [500, 1500, 1500]
    held.delay(100, 9000)
    assert held.total_ms(9050) == 1550


@pytest.mark.parametrize("first_burst_ms", [1, 500, 2_000, 9_999])
def test_the_first_burst_is_bounded(first_burst_ms: int) -> None:
    window, limit = SampleWindow(first_burst_ms=first_burst_ms), 1000.0
    rate, sent, now_ms = SampledRate(window), 0, 0
    while now_ms < 30_000:
        sent += 10
        now_ms += rate.charge(10, now_ms, limit)
        # One request too many: that it is, is known when it is charged. Rounding adds a millisecond's worth.
        assert sent <= limit * (max(now_ms, first_burst_ms) + first_burst_ms) / 1000 + 21
    assert sent > limit * 28


def test_without_a_bound_the_first_burst_is_kafkas() -> None:
    whole, none = SampleWindow(first_burst_ms=60_000), SampleWindow()
    assert [whole.least_ms(ms) for ms in range(0, 12_000, 250)] == [none.least_ms(ms) for ms in range(0, 12_000, 250)]
    assert whole.value_max(5.0) == none.value_max(5.0) == 50.0
    assert SampleWindow(first_burst_ms=2000).value_max(5.0) == 10.0


def held_half_the_time(connections: int) -> tuple[Demand, HeldTime]:
    """A client whose connections are all held for half of each second, for ten seconds."""
    demand, held = Demand(), HeldTime()
    for second in range(10):
        for _ in range(connections):
            demand.note(held, second * 1000, SampleWindow())
            held.begin(second * 1000)
            demand.note(held, second * 1000, SampleWindow())
        for _ in range(connections):
            held.end(second * 1000 + 500)
    return demand, held


def test_demand_is_the_rate_over_the_time_that_was_not_held() -> None:
    window = SampleWindow()
    demand, held = held_half_the_time(1)
    assert demand.estimate(1000.0, held, 10_000, window) == pytest.approx(2000.0)
    assert demand.estimate(1000.0, held, 60_000, window) == 1000.0  # nothing was held lately
    assert Demand().estimate(1000.0, HeldTime(), 0, window) == 1000.0


def test_demand_has_a_bound() -> None:
    demand, held = Demand(), HeldTime()
    demand.note(held, 0, SampleWindow())
    held.begin(0)
    assert demand.estimate(1000.0, held, 10_000, SampleWindow()) == pytest.approx(100_000.0)


def test_the_metrics_of_a_throttled_client_have_its_demand() -> None:
    quotas = ClientQuotas()
    quotas.update({PRODUCER: {ALICE: 1000.0}})
    quotas.produce("alice", "a", 12_000, 0)
    quotas.held("produce", "alice", "a", 0).begin(0)
    (line,) = at_once(quotas.by_type["produce"].usages(1000))
    assert line.rate is not None
    assert line.demand is not None
    assert line.demand > 50 * line.rate


def test_an_observed_limit_that_is_enforced_as_it_was_is_observed_no_more() -> None:
    quotas = ClientQuotas()
    quotas.update({PRODUCER: {BOB: 1000.0}}, {PRODUCER: {ALICE: 1000.0}})
    assert quotas.produce("alice", "etl", 100_000, 0) == 0

    quotas.update({PRODUCER: {ALICE: 1000.0}}, {PRODUCER: {BOB: 1000.0}})

    assert quotas.produce("bob", "etl", 100_000, 0) == 0
    assert quotas.produce("alice", "etl", 100_000, 0) > 0
    assert set(lines(quotas, PRODUCE, 0)) == {BOB}


def test_observed_time_on_the_loop_would_hold_for_a_sample_at_most() -> None:
    quotas = ClientQuotas()
    quotas.update({}, {"request_percentage": {ALICE: 10.0}})
    sensor = quotas.requests.sensor_of("alice", "a", 0)
    assert sensor.limit is None
    quotas.requests.observe("alice", "a", 10**9, 0)
    assert lines(quotas, "request", 5000)[ALICE].held_ms == 0, "a tenth of ten seconds"
    quotas.requests.observe("alice", "a", 10**9, 0)
    assert lines(quotas, "request", 5000)[ALICE].held_ms == 1000


def test_observed_mutations_are_refused_to_nobody() -> None:
    class Clock:
        def now_ms(self) -> int:
            return 0

        def monotonic_ms(self) -> float:
            return 0.0

    quotas = ClientQuotas()
    quotas.update({}, {"controller_mutation_rate": {ALICE: 1.0}})
    for partitions in (11, 2):
        mutations = quotas.mutations.begin("alice", "a", Clock(), strict=True)
        mutations.record(partitions)
        assert quotas.mutations.finish(mutations, 0) == 0
    assert lines(quotas, "controller_mutation", 0)[ALICE].usage == 1.3
    assert lines(quotas, "controller_mutation", 60_000)[ALICE].held_ms == 2000, "the bucket holds eleven"
