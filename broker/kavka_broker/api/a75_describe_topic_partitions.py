"""DescribeTopicPartitions (75): partitions of topics, page by page, with eligible leader replicas (KIP-966).

- Topics come sorted by name; none named means all.
- A page has at most `response_partition_limit` partitions, and never more than `max.request.partition.size.limit`.
  Where it ends before the last, `next_cursor` names the topic and partition that come next; sent back, it goes on
  there.
- An unknown topic is UNKNOWN_TOPIC_OR_PARTITION, a name that cannot be one INVALID_TOPIC_EXCEPTION.
- A cursor before the first partition, or of a topic that is not among those named, is INVALID_REQUEST on every topic; a
  page always has room for one partition.
Versions: flexible from 0.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from kavka_broker.core.metadata.image.topic_names import INTERNAL, problem_with
from kavka_broker.core.metadata.image.topics import Topic
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from kavka_broker.protocol.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.metadata_answers import TOPIC_OPERATIONS
from kavka_broker.request.registry import api, listing
from kavka_broker.request.topic_answers import PARTITION_COST, offline

BYTES_MAX: Final = 256 * 1024
"""The largest request: thousands of names, which are sorted in one turn of the loop."""
TOPIC_COST: Final = 20


@api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, versions=(0, 0), bytes_max=BYTES_MAX)
@listing
def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, broker: Broker, client: Client
) -> DescribeTopicPartitionsResponse | asyncio.Task[DescribeTopicPartitionsResponse]:
    names = sorted({topic.name for topic in request.topics}) or list(broker.metadata.topics.names())
    limit = max(1, min(request.response_partition_limit, broker.config["max.request.partition.size.limit"]))
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names)):
        return DescribeTopicPartitionsResponse(topics=[problem(name, ErrorCode.INVALID_REQUEST) for name in names])
    start = 0
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
        start = cursor.partition_index if names and names[0] == cursor.topic_name else 0
    return broker.slices.run(page(names, start, limit, broker, client.listener))


def page(
    names: Sequence[str], start: int, limit: int, broker: Broker, listener: str
) -> Work[DescribeTopicPartitionsResponse]:
    answer = DescribeTopicPartitionsResponse()
    room, cost = limit, Cost()
    for name in names:
        if not room:
            answer.next_cursor = Cursor(name, start)
            break
        if cost.add(TOPIC_COST):
            yield
        topic = broker.metadata.topics.get(name)
        if topic is None:
            wrong = problem_with(name) is not None
            code = ErrorCode.INVALID_TOPIC_EXCEPTION if wrong else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answer.topics.append(problem(name, code))
            continue
        end = min(start + room, len(topic.partitions))
        answer.topics.append((yield from describe(topic, range(start, end), broker, listener, cost)))
        if end < len(topic.partitions):
            answer.next_cursor = Cursor(name, end)
            break
        room -= max(end - start, 0)
        start = 0
    return answer


def describe(
    topic: Topic, indexes: range, broker: Broker, listener: str, cost: Cost
) -> Work[DescribeTopicPartitionsResponseTopic]:
    known = yield from broker.topic_answers.answer(broker.metadata, topic, listener, cost)
    partitions = []
    for partition in known.partitions[indexes.start : indexes.stop]:
        state = topic.partitions[partition.partition_index]
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                error_code=partition.error_code,
                partition_index=partition.partition_index,
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replica_nodes,
                isr_nodes=partition.isr_nodes,
                eligible_leader_replicas=list(state.elr),
                last_known_elr=list(state.last_known_elr),
                offline_replicas=offline(broker.metadata.brokers, state, listener),
            )
        )
        if cost.add(PARTITION_COST):
            yield
    return DescribeTopicPartitionsResponseTopic(
        0, topic.name, topic.topic_id, topic.name in INTERNAL, partitions, TOPIC_OPERATIONS
    )


def problem(name: str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(code, name, is_internal=name in INTERNAL)
