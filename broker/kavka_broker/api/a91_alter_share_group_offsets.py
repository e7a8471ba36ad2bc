"""AlterShareGroupOffsets (91): where a share group without members goes on (KIP-932).

- A group that does not exist begins to; one of another protocol is GROUP_ID_NOT_FOUND, one with members
  NON_EMPTY_GROUP.
- A topic or partition that does not exist gets an error of its own, as does a partition whose state the share
  coordinator has not taken.
- An offset below -1 is INVALID_REQUEST, for its partition; -1 lets the group begin as a new one does.
- Of a partition that is named twice the last offset counts, and both answers tell what became of it.
- What has been delivered beyond the new offset is forgotten.
- Below share.version 1 it is UNSUPPORTED_VERSION.
Versions: 0, flexible.
"""

from kavka_broker.coordinator.groups.share_groups import is_served
from kavka_broker.coordinator.share.share_state_client import Place
from kavka_broker.core.metadata.image.topics import Topic
from kavka_broker.core.share.share_states import UNSET
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
)
from kavka_broker.protocol.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each

NO_PARTITION = "This server does not host this topic-partition."


@api(
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    versions=(0, 0),
    each=(Each("topics.partitions", "responses.partitions", per_turn=500),),
)
async def alter_share_group_offsets(
    request: AlterShareGroupOffsetsRequest, broker: Broker, client: Client
) -> AlterShareGroupOffsetsResponse:
    del client
    if not is_served(broker.metadata):
        return AlterShareGroupOffsetsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not request.group_id:
        return AlterShareGroupOffsetsResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    response, names, offsets = AlterShareGroupOffsetsResponse(), dict[bytes, str](), dict[Place, int]()
    slots = dict[Place, list[AlterShareGroupOffsetsResponsePartition]]()
    for topic in request.topics:
        known = broker.metadata.topics.get(topic.topic_name)
        answer = AlterShareGroupOffsetsResponseTopic(topic.topic_name)
        response.responses.append(answer)
        if known is not None:
            answer.topic_id, names[known.topic_id] = known.topic_id, known.name
        for partition in topic.partitions:
            slot = AlterShareGroupOffsetsResponsePartition(partition.partition_index)
            answer.partitions.append(slot)
            try:
                place = _place(known, partition)
            except BrokerError as error:
                slot.error_code, slot.error_message = error.code, error.message
                continue
            offsets[place] = partition.start_offset
            slots.setdefault(place, []).append(slot)
    try:
        shard = broker.groups.shard(request.group_id)
        errors = await shard.share_offsets.alter(request.group_id, names, offsets)
    except BrokerError as error:
        return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
    for place, code in errors.items():
        for slot in slots[place]:
            slot.error_code = code
    return response


def _place(topic: Topic | None, asked: AlterShareGroupOffsetsRequestPartition) -> Place:
    """Return the partition that is asked about. Raises BrokerError."""
    if topic is None or asked.partition_index not in topic.partitions:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_PARTITION)
    if asked.start_offset < UNSET:
        problem = f"{asked.start_offset} is no start offset; write 0 or more, or {UNSET}"
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)
    return topic.topic_id, asked.partition_index
