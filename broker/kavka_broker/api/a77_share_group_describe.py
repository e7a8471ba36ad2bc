"""ShareGroupDescribe (77): share groups (KIP-932), their members, and what each has.

- A group that does not exist, or is of another protocol, is GROUP_ID_NOT_FOUND.
- Topics that have been deleted are left out of assignments.
- Answered when all that is told is committed.
- Below share.version 1 it is UNSUPPORTED_VERSION.
Versions: 1, flexible.
"""

from kavka_broker.api.a15_describe_groups import EVERY_OPERATION
from kavka_broker.coordinator.groups.share_groups import is_served
from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.core.share_group.state import ShareGroup, ShareMember
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from kavka_broker.protocol.messages.share_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each

MEMBER_COST = 3  # of a slice
NAMES_PER_COST = 4  # that are sorted


@api(
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    versions=(1, 1),
    each=(Each("group_ids", "groups", per_turn=100),),
)
async def share_group_describe(
    request: ShareGroupDescribeRequest, broker: Broker, client: Client
) -> ShareGroupDescribeResponse:
    del client
    if not is_served(broker.metadata):
        code = ErrorCode.UNSUPPORTED_VERSION
        return ShareGroupDescribeResponse(
            groups=[DescribedGroup(code, None, group_id) for group_id in request.group_ids]
        )
    answer = ShareGroupDescribeResponse(groups=[await describe(group_id, broker) for group_id in request.group_ids])
    if request.include_authorized_operations:
        for group in answer.groups:
            if not group.error_code:
                group.authorized_operations = EVERY_OPERATION
    return answer


async def describe(group_id: str, broker: Broker) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(ErrorCode.INVALID_GROUP_ID)
    try:
        shard = broker.groups.shard(group_id)
        group, committed = shard.shares.existing(group_id), shard.log.when_settled()
    except BrokerError as error:
        return DescribedGroup(error.code, error.message or None, group_id)
    described = await broker.slices.whole(description_of(group, broker.metadata.topics))
    described.assignor_name = broker.groups.settings.share(group_id).assignor
    error_code = ErrorCode.NONE if committed is None else await committed
    return described if error_code is ErrorCode.NONE else DescribedGroup(error_code, None, group_id)


def description_of(group: ShareGroup, topics: Topics) -> Work[DescribedGroup]:
    """Describe a group as it is now: nothing changes it, another one takes its place."""
    answer, cost = DescribedGroup(ErrorCode.NONE, None, group.group_id, group.state.value), Cost()
    answer.group_epoch, answer.assignment_epoch = group.epoch, group.assignment_epoch
    for member in list(group.members.values()):
        answer.members.append((yield from member_of(member, topics, cost)))
    return answer


def member_of(member: ShareMember, topics: Topics, cost: Cost) -> Work[Member]:
    if cost.add(MEMBER_COST + len(member.topics) // NAMES_PER_COST):
        yield
    assignment = Assignment()
    for topic_id, indexes in member.assigned.items():
        if (topic := topics.by_id(topic_id)) is not None:
            assignment.topic_partitions.append(TopicPartitions(topic_id, topic.name, sorted(indexes)))
        if cost.add(1 + len(indexes)):
            yield
    return Member(
        member.member_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        sorted(member.topics),
        assignment,
    )
