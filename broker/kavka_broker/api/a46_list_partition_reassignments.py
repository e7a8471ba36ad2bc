"""ListPartitionReassignments (46): the partitions that are on their way to other brokers.

- Answered by the active controller, so that what it has begun is seen at once.
- No topics named (null) means all. Unknown topics and partitions are left out, as are those that stay where they are.
Versions: flexible from 0.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from kavka_broker.core.metadata.decide.reassignments import is_moving
from kavka_broker.core.metadata.image.topics import Topic
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kavka_broker.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api
from kavka_broker.request.split_requests import Each

PARTITIONS_PER_LOOK: Final = 1_000


@api(
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    versions=(0, 0),
    on=BOTH,
    forwarded=True,
    each=(Each("topics.partition_indexes", "topics.partitions", per_turn=200),),
)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, broker: Broker, client: Client
) -> ListPartitionReassignmentsResponse | asyncio.Task[ListPartitionReassignmentsResponse]:
    del client
    topics = broker.metadata.topics
    if request.topics is None:
        asked: list[tuple[Topic, Collection[int]]] = [(topic, topic.partitions) for topic in topics]
    else:
        asked = [
            (topic, asked.partition_indexes)
            for asked in request.topics
            if (topic := topics.get(asked.name)) is not None
        ]
    return broker.slices.run(ongoing_of(asked))


def ongoing_of(asked: list[tuple[Topic, Collection[int]]]) -> Work[ListPartitionReassignmentsResponse]:
    answer, cost = ListPartitionReassignmentsResponse(error_message=None), Cost()
    for topic, indexes in asked:
        partitions = yield from ongoing_in(topic, list(indexes), cost)
        if partitions:
            answer.topics.append(OngoingTopicReassignment(topic.name, partitions))
        if cost.add(1):
            yield
    return answer


def ongoing_in(topic: Topic, indexes: Sequence[int], cost: Cost) -> Work[list[OngoingPartitionReassignment]]:
    found: list[OngoingPartitionReassignment] = []
    for start in range(0, len(indexes), PARTITIONS_PER_LOOK):
        some = indexes[start : start + PARTITIONS_PER_LOOK]
        moving = ongoing(topic, some)
        found += moving
        if cost.add(len(some) // 2 + len(moving)):
            yield
    return found


def ongoing(topic: Topic, indexes: Iterable[int]) -> list[OngoingPartitionReassignment]:
    return [
        OngoingPartitionReassignment(index, list(state.replicas), list(state.adding), list(state.removing))
        for index in indexes
        if (state := topic.partitions.get(index)) is not None and is_moving(state)
    ]
