"""Reads the open transactions of a Kafka: coordinators tell them, leaders tell the producers that hold partitions."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kafka.protocol.admin import DescribeProducersRequest, DescribeTransactionsRequest, ListTransactionsRequest

from kavka_operator.domain.transactions import (
    ActiveProducer,
    OpenTransaction,
    PartitionKey,
    attributed,
    held_back,
    holders,
    unknown_to,
)
from kavka_operator.kafka.errors import raise_for

OPEN_STATES: Final = ["Ongoing", "PrepareCommit", "PrepareAbort"]
DESCRIBED_AT_ONCE: Final = 1000
PARTITIONS_MAX: Final = 500
"""Partitions whose producers are asked for: those where most records are held back."""

Send = Callable[[Any, int | None], Any]


def open_transactions(
    send: Send,
    brokers: Iterable[int],
    leaders: Mapping[PartitionKey, int],
    ends: Mapping[PartitionKey, int],
    stable: Mapping[PartitionKey, int],
) -> list[OpenTransaction]:
    """Every open transaction that may be described, and the producers that hold a stable offset without one.

    A transaction that ends between two requests is told by neither: a producer that no coordinator has named counts
    only if its partition names it once more afterwards.
    """
    held = held_back(ends, stable)
    furthest = sorted((key for key in held if key in leaders), key=lambda key: -held[key])[:PARTITIONS_MAX]
    oldest = holders(_producers(send, leaders, furthest))
    known = [found for broker in brokers for found in _of_coordinator(send, broker)]
    doubtful = {producer.partition for producer in unknown_to(known, oldest.values())}
    still = {producer.identity for producer in _producers(send, leaders, sorted(doubtful))}
    kept = [found for found in oldest.values() if found.partition not in doubtful or found.identity in still]
    return attributed(known, kept, held)


def _of_coordinator(send: Send, broker: int) -> Iterator[OpenTransaction]:
    listed = send(ListTransactionsRequest(state_filters=OPEN_STATES, producer_id_filters=[]), broker)
    raise_for(listed.error_code, None)
    names = [told.transactional_id for told in listed.transaction_states]
    for begin in range(0, len(names), DESCRIBED_AT_ONCE):
        request = DescribeTransactionsRequest(transactional_ids=names[begin : begin + DESCRIBED_AT_ONCE])
        answer = send(request, broker)
        now_ms = time.time() * 1000
        for told in answer.transaction_states:
            # One that has ended meanwhile, or whose coordinator has moved, is open here no longer.
            if not told.error_code and told.transaction_state in OPEN_STATES:
                yield _transaction(told, broker, now_ms)


def _producers(
    send: Send, leaders: Mapping[PartitionKey, int], keys: Sequence[PartitionKey]
) -> Iterator[ActiveProducer]:
    """The producers with open transactions in these partitions; nothing of a partition that its leader refuses."""
    for leader in sorted({leaders[key] for key in keys}):
        answer = send(_asks_producers([key for key in keys if leaders[key] == leader]), leader)
        now_ms = time.time() * 1000
        for topic in answer.topics:
            for partition in topic.partitions:
                for told in partition.active_producers if not partition.error_code else ():
                    if told.current_txn_start_offset >= 0:
                        key = topic.name, partition.partition_index
                        idle = _seconds_since(told.last_timestamp, now_ms)
                        yield ActiveProducer(key, told.producer_id, told.current_txn_start_offset, idle)


def _asks_producers(keys: Sequence[PartitionKey]) -> DescribeProducersRequest:
    by_topic: dict[str, list[int]] = {}
    for topic, index in keys:
        by_topic.setdefault(topic, []).append(index)
    make = DescribeProducersRequest.TopicRequest
    return DescribeProducersRequest(
        topics=[make(name=topic, partition_indexes=indexes) for topic, indexes in by_topic.items()]
    )


def _transaction(told: Any, coordinator: int, now_ms: float) -> OpenTransaction:
    return OpenTransaction(
        transactional_id=told.transactional_id,
        producer_id=told.producer_id,
        state=told.transaction_state,
        coordinator=coordinator,
        open_seconds=_seconds_since(told.transaction_start_time_ms, now_ms),
        timeout_seconds=told.transaction_timeout_ms / 1000,
        partitions=frozenset((topic.topic, index) for topic in told.topics for index in topic.partitions),
    )


def _seconds_since(moment_ms: int, now_ms: float) -> float | None:
    """The time since a moment of another clock, which may be ahead of this one; None where there was none."""
    return max(0.0, now_ms - moment_ms) / 1000 if moment_ms >= 0 else None
