"""Whose transaction holds a partition back, from what coordinators and leaders tell at different moments."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kavka_operator.domain.transactions import ActiveProducer, OpenTransaction, attributed, held_back, holders
from kavka_operator.kafka.transactions import open_transactions

FIRST, SECOND = ("t", 0), ("t", 1)


def known(producer_id: int, *partitions: tuple[str, int]) -> OpenTransaction:
    return OpenTransaction(f"tx-{producer_id}", producer_id, "Ongoing", 1, 5.0, 60.0, frozenset(partitions))


def active(partition: tuple[str, int], producer_id: int, start: int, idle: float | None = 3.0) -> ActiveProducer:
    return ActiveProducer(partition, producer_id, start, idle)


def test_a_partition_is_held_back_by_the_records_behind_its_stable_offset() -> None:
    assert held_back({FIRST: 10, SECOND: 10}, {FIRST: 4, SECOND: 10, ("gone", 0): 1}) == {FIRST: 6}


def test_the_oldest_transaction_of_a_partition_holds_it_back() -> None:
    oldest = holders([active(FIRST, 1, 40), active(FIRST, 2, 30), active(SECOND, 1, 5)])
    found = attributed([known(1, FIRST, SECOND), known(2, FIRST)], oldest.values(), {FIRST: 70, SECOND: 7})
    assert [(transaction.name, dict(transaction.holds)) for transaction in found] == [
        ("tx-2", {FIRST: 70}),
        ("tx-1", {SECOND: 7}),
    ]


def test_a_producer_that_no_coordinator_names_is_told_without_one() -> None:
    producers = [active(FIRST, 9, 1, 900.0), active(SECOND, 9, 2, 800.0)]
    (_, found) = sorted(
        attributed([known(1, FIRST)], producers, {FIRST: 4, SECOND: 5}), key=lambda one: one.producer_id
    )
    assert (found.name, found.coordinator, found.open_seconds) == ("producer 9", None, 800.0)
    assert found.holds == {FIRST: 4, SECOND: 5}


def test_a_transaction_of_a_producer_is_not_that_of_another_partition() -> None:
    found = attributed([known(1, SECOND)], [active(FIRST, 1, 1)], {FIRST: 4})
    assert sorted((transaction.name, dict(transaction.holds)) for transaction in found) == [
        ("producer 1", {FIRST: 4}),
        ("tx-1", {}),
    ]


class Told:
    """A broker that answers ListTransactions with nothing, and names its producers as often as they are given."""

    def __init__(self, *producers: Sequence[int]) -> None:
        self._producers = list(producers)
        self.asked: list[str] = []

    def __call__(self, request: Any, _: int | None) -> Any:
        kind = type(request).__name__
        self.asked.append(kind)
        if kind == "ListTransactionsRequest":
            return SimpleNamespace(error_code=0, transaction_states=[])
        told = [
            SimpleNamespace(producer_id=producer, current_txn_start_offset=4, last_timestamp=0)
            for producer in self._producers.pop(0)
        ]
        partition = SimpleNamespace(partition_index=0, error_code=0, active_producers=told)
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[partition])])


@pytest.mark.parametrize(("afterwards", "found"), [([9], ["producer 9"]), ([], [])])
def test_a_transaction_that_ended_while_coordinators_were_asked_is_not_told(
    afterwards: list[int], found: list[str]
) -> None:
    broker = Told([9], afterwards)
    leaders: Mapping[tuple[str, int], int] = {FIRST: 1}
    transactions = open_transactions(broker, [1], leaders, {FIRST: 10}, {FIRST: 4})
    assert [transaction.name for transaction in transactions] == found
    assert broker.asked == ["DescribeProducersRequest", "ListTransactionsRequest", "DescribeProducersRequest"]


def test_where_nothing_is_held_back_only_coordinators_are_asked() -> None:
    broker = Told()
    assert open_transactions(broker, [1], {FIRST: 1}, {FIRST: 10}, {FIRST: 10}) == []
    assert broker.asked == ["ListTransactionsRequest"]
