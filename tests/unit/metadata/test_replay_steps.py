"""A batch replayed in steps comes to what its records do."""

from collections.abc import Sequence

import pytest

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.replay_steps import PartitionRun, steps_of
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.abort_transaction_record import AbortTransactionRecord
from kavka_broker.protocol.messages.metadata.begin_transaction_record import BeginTransactionRecord
from kavka_broker.protocol.messages.metadata.end_transaction_record import EndTransactionRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord

A, B = b"a" * 16, b"b" * 16


def partitions(topic_id: bytes, *indexes: int, leader: int = 1) -> list[Message]:
    return [PartitionState((1, 2), (1, 2), leader).record(topic_id, index) for index in indexes]


TWO_TOPICS = [TopicRecord("a", A), *partitions(A, 0, 1, 2), TopicRecord("b", B), *partitions(B, 0, 1)]
AGAIN = [TopicRecord("a", A), *partitions(A, 0, 1), *partitions(A, 1, 2, leader=2)]
INTERLEAVED = [TopicRecord("a", A), TopicRecord("b", B), *partitions(A, 0), *partitions(B, 0), *partitions(A, 1)]
CHANGED = [*TWO_TOPICS, PartitionChangeRecord(partition_id=0, topic_id=A, leader=2), RemoveTopicRecord(B)]


@pytest.mark.parametrize(
    ("records", "runs"),
    [
        (TWO_TOPICS, [3, 2]),
        (AGAIN, [4]),
        (INTERLEAVED, [1, 1, 1]),
        (CHANGED, [3, 2]),
        ([BeginTransactionRecord(), *TWO_TOPICS], [3, 2]),
        ([BeginTransactionRecord(), *TWO_TOPICS, EndTransactionRecord()], [3, 2]),
        ([BeginTransactionRecord(), *TWO_TOPICS, AbortTransactionRecord()], [3, 2]),
    ],
)
def test_steps_make_the_same_image_as_the_records(records: Sequence[Message], runs: list[int]) -> None:
    one_by_one, in_steps = Metadata(), Metadata()
    for record in records:
        one_by_one.replay(record)
    steps = steps_of(records)
    in_steps.replay_steps(steps)
    assert in_steps == one_by_one
    assert in_steps.offset == one_by_one.offset
    assert in_steps.transaction == one_by_one.transaction
    assert in_steps.topics.partition_count == one_by_one.topics.partition_count
    assert [len(step.records) for step in steps if isinstance(step, PartitionRun)] == runs
