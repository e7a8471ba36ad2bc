"""A budget of three brokers as clients, brokers and the operator act on it together, over drawn traffic.

Time is virtual. Each broker has its own quota and hears of new parts a moment later than the others; the operator looks
at what the brokers tell, and sets parts. Over any ten seconds all of them let through no more than the budget, a
burst's worth, and one request of each connection.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.core.quota.entity import Entity
from kavka_broker.core.quota.entity_limits import Limits, budgets, in_force
from kavka_broker.loop.slices import at_once
from kavka_broker.quotas.client_quotas import PRODUCE, ClientQuotas
from kavka_broker.quotas.quota_shares import PART_BURST_MS
from kavka_broker.quotas.sensor import Holding
from kavka_operator.domain.observed import SeenBroker, SeenCluster, SeenUsage
from kavka_operator.reconcile.quota_budgets import parts
from kavka_operator.reconcile.quotas import target_values
from tests.unit.operator.fakes import NOW, quota

ETL = Entity(client_id="etl")
BUDGET = 600_000
WANTED = quota(limits={"producerByteRate": BUDGET}, scope="Cluster")
NODES = (0, 1, 2)
STEP_MS = 20
WINDOW_MS = 10_000
LOOK_MS = 1_000
PHASE_MS = 6_000


@dataclass(slots=True)
class Connection:
    """Sends one request after the other while its broker has traffic, and is held as a broker holds it."""

    request_bytes: int
    held: Holding | None = None
    until_ms: int = 0

    def sent(self, quotas: ClientQuotas, now_ms: int) -> int:
        """Send what may be sent now, ten times the budget at the most; the bytes."""
        passed = 0
        while passed < BUDGET * 10 * STEP_MS // 1000 and (self.held is None or not self._waits(self.held, now_ms)):
            delay_ms = quotas.produce("alice", "etl", self.request_bytes, now_ms)
            passed += self.request_bytes
            if delay_ms:
                self.held, self.until_ms = quotas.held(PRODUCE, "alice", "etl", now_ms), now_ms + delay_ms
                self.held.begin(now_ms)
        return passed

    def _waits(self, held: Holding, now_ms: int) -> bool:
        if now_ms >= self.until_ms:
            self.until_ms = now_ms + held.rest_ms(now_ms)
        if now_ms < self.until_ms:
            return True
        held.end(now_ms)
        self.held = None
        return False


@dataclass(slots=True)
class Broker:
    number: int
    lag_ms: int
    connections: list[Connection]
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    news: list[tuple[int, Limits]] = field(default_factory=list)

    def hear(self, now_ms: int) -> None:
        while self.news and self.news[0][0] <= now_ms:
            _, limits = self.news.pop(0)
            self.quotas.update(in_force(limits, 0, self.number), budgets=budgets(limits), now_ms=now_ms)

    def usage(self, now_ms: int) -> SeenUsage:
        lines = at_once(self.quotas.by_type[PRODUCE].usages(now_ms))
        rate, demand = sum(line.rate or 0.0 for line in lines), sum(line.demand or 0.0 for line in lines)
        return SeenUsage(self.number, rate, 0.0, 0.0, 0.0, demand)


def run(brokers: list[Broker], phases: list[set[int]]) -> Iterator[int]:
    """Yield the bytes that pass in each step; in each phase these brokers have traffic."""
    values: dict[str, float] = {}
    for now_ms in range(0, PHASE_MS * len(phases), STEP_MS):
        if now_ms % LOOK_MS == 0:
            values = _look(brokers, values, now_ms)
        passed = 0
        for broker in brokers:
            broker.hear(now_ms)
            if broker.number in phases[now_ms // PHASE_MS]:
                passed += sum(connection.sent(broker.quotas, now_ms) for connection in broker.connections)
        yield passed


def _look(brokers: list[Broker], values: dict[str, float], now_ms: int) -> dict[str, float]:
    """Have the operator look once; brokers hear of what it sets each at its own time."""
    usage = {str(ETL): tuple(broker.usage(now_ms) for broker in brokers)} if values else {}
    members = {number: SeenBroker(number, f"b{number}:9092") for number in NODES}
    seen = SeenCluster("id", 0, members, quotas={ETL: values}, usage=usage, brokers_expected=3)
    target = {**target_values(WANTED, 3, NOW), **parts(WANTED, seen)}
    if target != values:
        for broker in brokers:
            broker.news.append((now_ms + (broker.lag_ms if values else 0), {key: {ETL: target[key]} for key in target}))
    return target


def most_in_a_window(passed: list[int]) -> int:
    totals, steps = [0, *accumulate(passed)], WINDOW_MS // STEP_MS
    return max(totals[end] - totals[max(end - steps, 0)] for end in range(1, len(totals)))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.integers(1_000, BUDGET * 2), min_size=1, max_size=3), min_size=3, max_size=3),
    st.lists(st.integers(0, LOOK_MS - STEP_MS), min_size=3, max_size=3),
    st.lists(st.sets(st.sampled_from(NODES)), min_size=2, max_size=6),
)
def test_no_ten_seconds_let_more_through_than_the_budget_a_burst_and_a_request_of_each_connection(
    sizes: list[list[int]], lags_ms: list[int], phases: list[set[int]]
) -> None:
    brokers = [Broker(number, lags_ms[number], [Connection(size) for size in sizes[number]]) for number in NODES]
    most = most_in_a_window(list(run(brokers, phases)))
    allowed = BUDGET * (WINDOW_MS + PART_BURST_MS) // 1000 + sum(map(sum, sizes))
    assert most <= allowed, f"{most / BUDGET / 10:.3f} of the budget, of {allowed / BUDGET / 10:.3f}"


@settings(max_examples=15, deadline=None)
@given(st.integers(1_000, BUDGET // 12), st.lists(st.sets(st.sampled_from(NODES)), min_size=2, max_size=6))
def test_with_requests_of_a_twelfth_of_a_second_it_is_never_more_than_a_twentieth_above(
    size: int, phases: list[set[int]]
) -> None:
    brokers = [Broker(number, 500, [Connection(size)]) for number in NODES]
    assert most_in_a_window(list(run(brokers, phases))) <= 1.05 * BUDGET * WINDOW_MS / 1000


@pytest.mark.parametrize("size", [1_000, 50_000, 950_000])
def test_all_load_on_one_broker_reaches_nearly_all_of_the_budget(size: int) -> None:
    brokers = [Broker(number, 500, [Connection(size)]) for number in NODES]
    passed = list(run(brokers, [{1}] * 8))
    settled = passed[len(passed) // 4 :]
    seconds = len(settled) * STEP_MS / 1000
    assert sum(settled) + size >= 0.95 * BUDGET * seconds
