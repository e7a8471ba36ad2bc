import pytest

from bench import load, sections
from bench.__main__ import FULL, QUICK
from bench.load import Load, Outcome
from bench.machine import Cost, Cpu


def test_every_second_repetition_begins_with_the_other_broker() -> None:
    brokers = ["kavka", "kafka"]
    orders = [sections.alternating(brokers, repetition) for repetition in range(3)]
    assert orders == [["kavka", "kafka"], ["kafka", "kavka"], ["kavka", "kafka"]]


def test_the_full_plan_has_every_case_of_the_aim() -> None:
    loads = sections.produce_loads(FULL)
    assert len(loads) == len(set(loads)) == 2 * 2 * 2 * 3
    assert {(what.size_bytes, what.partitions, what.acks) for what in loads} == {
        (size_bytes, partitions, acks) for size_bytes in (100, 1000) for partitions in (1, 6) for acks in ("1", "all")
    }


def test_the_quick_plan_has_the_fast_client_alone() -> None:
    assert {what.client for what in sections.produce_loads(QUICK)} == {load.RDKAFKA}


def test_a_run_is_counted_with_all_it_sent() -> None:
    what = Load(load.RDKAFKA, 1000, 6, 1_000_000, "all")
    cost = Cost(wall_seconds=2.0, broker=Cpu(1.0, 2.0), client_seconds=1.0, others_seconds=1.0)

    class Named:
        name = "kavka"

    outcome = Outcome(1_000_000, 500_000.0)
    measure = sections.loaded("produce", Named(), 0, what, outcome, cost)
    assert measure.case == "1000 B, 6 partitions, acks=all, rdkafka"
    assert measure.figures["cpu_seconds_per_gb"] == pytest.approx(3.0)
    assert measure.figures["megabytes_per_second"] == pytest.approx(500.0)
    assert measure.others_cores == pytest.approx(0.5)
    assert "p99_ms" not in measure.figures
