"""A long batch as few steps: partitions of one topic that stand in a row are replayed in one.

To make the state of a partition out of its record takes a microsecond or two, and a batch may have ten thousand: it is
all or nothing, so it cannot be replayed some a turn. But what needs no image can be made before, elsewhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from kavka_broker.core.metadata.image.topics import PartitionState, state_of
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord


class PartitionRun(NamedTuple):
    """Consecutive records that make partitions of one topic, and the states they make."""

    topic_id: bytes
    records: Sequence[Message]
    states: Mapping[int, PartitionState]


Step = Message | PartitionRun


def steps_of(records: Iterable[Message]) -> list[Step]:
    """Steps in which a batch is replayed."""
    steps: list[Step] = []
    for topic_id, run in groupby(records, _topic_of):
        some = list(run)
        if topic_id is None:
            steps += some
        else:
            states = {record.partition_id: state_of(record) for record in some if isinstance(record, PartitionRecord)}
            assert len(states) <= len(some), f"{len(states)} partitions of {len(some)} records"
            steps.append(PartitionRun(topic_id, some, states))
    return steps


def _topic_of(record: Message) -> bytes | None:
    return record.topic_id if isinstance(record, PartitionRecord) else None
