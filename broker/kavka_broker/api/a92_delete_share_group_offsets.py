"""DeleteShareGroupOffsets (92): a share group without members forgets how far it has come in topics (KIP-932).

- A group that does not exist, or is of another protocol, is GROUP_ID_NOT_FOUND, one with members NON_EMPTY_GROUP.
- A topic that does not exist, or that the group has no state of, is UNKNOWN_TOPIC_OR_PARTITION.
- The share coordinator deletes the state before the group forgets the topic; where that fails it may be asked again.
- Below share.version 1 it is UNSUPPORTED_VERSION.
Versions: 0, flexible.
"""

from kavka_broker.api.a91_alter_share_group_offsets import NO_PARTITION
from kavka_broker.coordinator.groups.share_groups import is_served
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from kavka_broker.protocol.messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each

NOTHING = "There is no offset information to delete."


@api(
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    versions=(0, 0),
    each=(Each("topics", "responses", per_turn=100),),
)
async def delete_share_group_offsets(
    request: DeleteShareGroupOffsetsRequest, broker: Broker, client: Client
) -> DeleteShareGroupOffsetsResponse:
    del client
    if not is_served(broker.metadata):
        return DeleteShareGroupOffsetsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not request.group_id:
        return DeleteShareGroupOffsetsResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    names = list(dict.fromkeys(topic.topic_name for topic in request.topics))
    topics = {name: broker.metadata.topics.get(name) for name in names}
    try:
        shard = broker.groups.shard(request.group_id)
        errors = await shard.share_offsets.delete_topics(request.group_id, list(filter(None, topics.values())))
    except BrokerError as error:
        return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
    response = DeleteShareGroupOffsetsResponse()
    for name, topic in topics.items():
        answer = DeleteShareGroupOffsetsResponseTopic(name)
        response.responses.append(answer)
        if topic is None:
            answer.error_code, answer.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_PARTITION
        elif topic.topic_id not in errors:
            answer.error_code, answer.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOTHING
        else:
            answer.topic_id, answer.error_code = topic.topic_id, errors[topic.topic_id]
    return response
