"""ShareGroupDescribe (77): share groups (KIP-932), their members, and what each has.

- A group that does not exist, or is of another protocol, is GROUP_ID_NOT_FOUND.
- Topics that have been deleted are left out of assignments.
- Answered when all that is told is committed.
- Below share.version 1 it is UNSUPPORTED_VERSION.
Versions: 1, flexible.
"""

from functools import partial

from kavka_broker.coordinator.groups.share_groups import is_served
from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.core.share_group.state import ShareGroup, ShareMember
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from kavka_broker.protocol.messages.share_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.describe_answers import describe_all
from kavka_broker.request.registry import api, listing
from kavka_broker.request.split_requests import Each

MEMBER_COST = 3  # of a slice
NAMES_PER_COST = 4  # that are sorted


@api(
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    versions=(1, 1),
    each=(Each("group_ids", "groups", per_turn=1, once=True),),
)
@listing
async def share_group_describe(
    request: ShareGroupDescribeRequest, broker: Broker, client: Client
) -> ShareGroupDescribeResponse:
    groups = await describe_all(
        request,
        DescribedGroup,
        lambda shard: shard.shares,
        partial(description_of, broker=broker),
        broker,
        client,
        is_served=is_served(broker.metadata),
    )
    return ShareGroupDescribeResponse(groups=groups)


def description_of(group: ShareGroup, broker: Broker) -> Work[DescribedGroup]:
    """Describe a group as it is now: nothing changes it, another one takes its place."""
    answer, cost = DescribedGroup(ErrorCode.NONE, None, group.group_id, group.state.value), Cost()
    topics = broker.metadata.topics
    answer.group_epoch, answer.assignment_epoch = group.epoch, group.assignment_epoch
    answer.assignor_name = broker.groups.settings.share(group.group_id).assignor
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
