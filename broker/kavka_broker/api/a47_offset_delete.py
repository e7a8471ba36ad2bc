"""OffsetDelete (47): a group forgets offsets.

- Of a running consumer group only topics that no member subscribes to: GROUP_SUBSCRIBED_TO_TOPIC for the others.
- Of other groups only while they have no members: NON_EMPTY_GROUP.
- A group without a name is INVALID_GROUP_ID.
- An offset that was never committed is no error; a partition that does not exist is.
Versions: 0.
"""

from collections.abc import Awaitable

from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from kavka_broker.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each


@api(
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    versions=(0, 0),
    each=(Each("topics.partitions", "topics.partitions", per_turn=100),),
)
def offset_delete(
    request: OffsetDeleteRequest, broker: Broker, client: Client
) -> OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]:
    if not request.group_id:
        return OffsetDeleteResponse(ErrorCode.INVALID_GROUP_ID)
    wanted = [(topic.name, part.partition_index) for topic in request.topics for part in topic.partitions]
    try:
        kept, waiting = broker.groups.shard(request.group_id).delete_offsets(request.group_id, wanted)
    except BrokerError as error:
        return OffsetDeleteResponse(error.code)
    response = OffsetDeleteResponse(topics=[answer_topic(topic, kept, broker) for topic in request.topics])
    return response if waiting is None else when_committed(response, waiting)


def answer_topic(topic: OffsetDeleteRequestTopic, kept: set[str], broker: Broker) -> OffsetDeleteResponseTopic:
    known = broker.metadata.topics.get(topic.name)
    partitions = []
    for partition in topic.partitions:
        error = ErrorCode.NONE
        if known is None or partition.partition_index not in known.partitions:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif topic.name in kept:
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        partitions.append(OffsetDeleteResponsePartition(partition.partition_index, error))
    return OffsetDeleteResponseTopic(topic.name, partitions)


async def when_committed(response: OffsetDeleteResponse, waiting: Waiting) -> OffsetDeleteResponse:
    response.error_code = await waiting
    return response
