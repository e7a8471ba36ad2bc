"""Which replicas may lead a partition next that has none in sync: DescribeTopicPartitions tells, Metadata does not.

Since KIP-966 the ISR of a partition may be empty. The controller still knows which replicas have all its records (the
eligible leader replicas), or which one led last.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import kafka.errors
from kafka.protocol.admin import DescribeTopicPartitionsRequest

from kavka_operator.domain.observed import SeenPartition

Send = Callable[[Any], Any]
"""Sends a request to the broker that is to be believed."""

TOPICS_MAX = 500
"""Topics in one request: a name has up to 249 bytes, and a broker of Kavka takes requests of up to 256 KiB."""
PARTITIONS_MAX = 2000
"""Partitions in one answer: as many as a broker gives by default (`max.request.partition.size.limit`)."""
UNKNOWN_THERE = (kafka.errors.IncompatibleBrokerVersion, kafka.errors.UnsupportedVersionError)
"""The errors of brokers that do not know the request. Their partitions always have a replica in the ISR."""


def with_eligible(send: Send, partitions: Sequence[SeenPartition]) -> tuple[SeenPartition, ...]:
    """The partitions, and of those with an empty ISR the replicas that may lead next."""
    names = sorted({partition.topic for partition in partitions if not partition.isr})
    told: dict[tuple[str, int], Any] = {}
    with contextlib.suppress(*UNKNOWN_THERE):
        for start in range(0, len(names), TOPICS_MAX):
            told.update(_described(send, names[start : start + TOPICS_MAX]))
    return tuple(
        _with(partition, told[partition.key]) if not partition.isr and partition.key in told else partition
        for partition in partitions
    )


def _described(send: Send, names: Sequence[str]) -> Iterator[tuple[tuple[str, int], Any]]:
    """The partitions of these topics, page by page."""
    topics = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names]
    cursor = None
    while True:
        answer = send(
            DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=PARTITIONS_MAX, cursor=cursor)
        )
        for topic in answer.topics:
            for partition in topic.partitions if not topic.error_code else ():
                if partition.replica_nodes:  # with an error or without: that of having no leader is expected here
                    yield (topic.name, partition.partition_index), partition
        if answer.next_cursor is None:
            return
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index
        )


def _with(partition: SeenPartition, told: Any) -> SeenPartition:
    """A partition as the second answer tells it: it may have got a leader since the first."""
    return replace(
        partition,
        leader=told.leader_id if told.leader_id >= 0 else None,
        isr=tuple(told.isr_nodes),
        elr=tuple(told.eligible_leader_replicas or ()),
        last_known_elr=tuple(told.last_known_elr or ()),
    )
