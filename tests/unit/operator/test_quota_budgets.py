"""Budgets of the whole cluster: the parts follow the traffic, step by step, and never allow more in between."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kavka_broker.core.quota.entity import Entity, Prefix
from kavka_broker.core.quota.entity_limits import CLUSTER, SHARE, in_force, share_key
from kavka_operator.api.quota import ClientQuota
from kavka_operator.domain.observed import SeenBroker, SeenCluster, SeenUsage
from kavka_operator.domain.plan import AlterQuota
from kavka_operator.loop.converge import converge
from kavka_operator.loop.observation import Observation
from kavka_operator.reconcile.quota_budgets import parts
from kavka_operator.reconcile.quotas import reconcile, target_values
from tests.unit.operator.fakes import NOW, FakeKafka, quota

ETL = Entity(client_id="etl")
BUDGET = 3_000_000
KEY = "producer_byte_rate"
WHOLE = quota(limits={"producerByteRate": BUDGET}, scope="Cluster")


def cluster(values: Mapping[str, float], demand: Mapping[int, float]) -> SeenCluster:
    """A cluster of these brokers, with what is set in Kafka, where clients ask for so much."""
    usage = {str(ETL): tuple(SeenUsage(broker, 0.0, 0.0, 0.0, 0.0, asked) for broker, asked in demand.items())}
    brokers = {broker: SeenBroker(broker, f"b{broker}:9092") for broker in demand}
    return SeenCluster("id", 0, brokers, quotas={ETL: values}, usage=usage, brokers_expected=3)


def look(values: dict[str, float], demand: Mapping[int, float]) -> dict[str, float]:
    """What is set in Kafka after one look of the operator."""
    seen = cluster(values, demand)
    applied = WHOLE.replaced({"status": WHOLE.status.replaced({"applied": values})})
    after = dict(values)
    for action in reconcile(applied, values, 3, NOW, parts=parts(WHOLE, seen)).actions:
        assert isinstance(action, AlterQuota)
        after = {key: value for key, value in after.items() if key not in action.remove} | dict(action.set)
    return after


def held(values: Mapping[str, float], broker: int) -> float:
    """The limit that a broker applies."""
    return in_force({key: {ETL: value} for key, value in values.items()}, 0, broker)[KEY][ETL]


def test_all_load_on_one_broker_gets_nearly_all_within_three_looks() -> None:
    values, demand = dict[str, float](), {0: 1e8, 1: 0.0, 2: 0.0}
    for _ in range(3):
        before, values = values, look(values, demand)
        for early in ({0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}):  # the brokers that have heard already
            if before:
                assert sum(held(values if broker in early else before, broker) for broker in range(3)) <= BUDGET
    assert held(values, 0) >= 0.95 * BUDGET
    assert look(values, demand) == values, "at rest nothing is written"


def test_a_look_goes_one_step_only() -> None:
    kafka, usage = FakeKafka(3), cluster({}, {0: 1e8, 1: 0.0, 2: 0.0}).usage
    held_by_busy = []
    for _ in range(3):
        converge(Observation([WHOLE], NOW, usage, brokers_expected=3), kafka)
        held_by_busy.append(held(kafka.quotas[ETL], 0))
    assert held_by_busy[0] <= held_by_busy[1] / 2
    assert held_by_busy[1] >= 0.95 * BUDGET
    assert held_by_busy[2] == held_by_busy[1]


def test_traffic_that_moves_takes_its_part_along() -> None:
    values = dict[str, float]()
    for demand in ({0: 1e8, 1: 0.0, 2: 0.0}, {0: 0.0, 1: 1e8, 2: 0.0}):
        for _ in range(3):
            values = look(values, demand)
    assert held(values, 1) >= 0.95 * BUDGET
    assert sum(held(values, broker) for broker in range(3)) <= BUDGET


def test_the_part_of_a_dead_broker_goes_to_the_others() -> None:
    values = dict[str, float]()
    for demand in ({0: 1e8, 1: 1e8, 2: 1e8}, {0: 1e8, 1: 1e8}):
        for _ in range(3):
            values = look(values, demand)
    assert [held(values, broker) for broker in (0, 1)] == pytest.approx([BUDGET / 2] * 2, rel=0.01)
    assert share_key(2, KEY) not in values
    assert sum(held(values, broker) for broker in range(3)) <= BUDGET + 1, "it may come back before anybody looks"


def test_shares_stay_while_no_broker_is_short() -> None:
    values = look({}, {0: 0.0, 1: 0.0, 2: 0.0})
    assert [held(values, broker) for broker in range(3)] == [BUDGET // 3] * 3
    assert look(values, {0: 700_000.0, 1: 1.0, 2: 10.0}) == values


def test_a_broker_that_says_nothing_keeps_its_part() -> None:
    values = look({}, {0: 0.0, 1: 0.0, 2: 0.0})
    seen = SeenCluster("id", 0, cluster({}, {0: 0, 1: 0, 2: 0}).brokers, quotas={ETL: values}, brokers_expected=3)
    assert parts(WHOLE, seen) == {key: value for key, value in values.items() if key != KEY}


@pytest.mark.parametrize(
    "wanted",
    [
        quota(limits={"producerByteRate": BUDGET}),
        quota(limits={"producerByteRate": BUDGET}, scope="Cluster", mode="Observe"),
        quota(limits={"producerByteRate": BUDGET}, scope="Cluster", entity={"clientId": {"default": True}}),
        quota(limits={"producerByteRate": 20}, scope="Cluster"),
        quota(limits={"controllerMutationRate": 20.0}, scope="Cluster"),
    ],
)
def test_what_is_not_divided_by_traffic(wanted: ClientQuota) -> None:
    assert not [key for key in parts(wanted, cluster({}, {0: 1e8, 1: 0.0, 2: 0.0})) if SHARE.fullmatch(key)]


def test_a_budget_that_is_divided_evenly_is_named_so_that_no_broker_lets_ten_seconds_through() -> None:
    seen = SeenCluster("id", 0, {}, brokers_expected=3)
    assert parts(WHOLE, seen) == {CLUSTER + KEY: BUDGET}
    by_default = quota(limits={"producerByteRate": BUDGET}, scope="Cluster", entity={"clientId": {"default": True}})
    assert parts(by_default, seen) == {CLUSTER + KEY: BUDGET}
    assert parts(quota(limits={"producerByteRate": 2}, scope="Cluster"), seen) == {}, "nothing is set of it"


def test_a_budget_of_a_prefix_follows_the_traffic_of_all_client_ids_that_begin_so() -> None:
    wanted = quota(limits={"producerByteRate": BUDGET}, scope="Cluster", entity={"clientId": {"prefix": "etl"}})
    seen = cluster({"kavka_prefix": 1.0}, {0: 9e6, 1: 0.0, 2: 0.0})
    named = replace(seen, usage={str(Entity(None, Prefix.of("etl"))): seen.usage[str(ETL)]})
    assert parts(wanted, named).keys() > {CLUSTER + KEY}


def test_the_words_name_each_part() -> None:
    values = look({}, {0: 0.0, 1: 0.0, 2: 0.0})
    seen = cluster(values, {0: 0.0, 1: 0.0, 2: 0.0})
    words = reconcile(WHOLE, values, 3, NOW, parts=parts(WHOLE, seen)).words[0]
    assert words.status == "True"
    assert "in all, broker 0: " in words.message
    assert target_values(WHOLE, 3, NOW) == {KEY: BUDGET // 3}
