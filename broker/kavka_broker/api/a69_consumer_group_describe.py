"""ConsumerGroupDescribe (69): groups of the new protocol (KIP-848), their members, what each has and is to have.

- A group that does not exist, or is a classic one, is GROUP_ID_NOT_FOUND.
- Topics that have been deleted are left out of assignments.
- Answered when all that is told is committed.
Versions: flexible from 0, the type of each member from 1.
"""

from collections.abc import Collection, Mapping
from functools import partial

from kavka_broker.coordinator.groups.consumer_groups import is_served
from kavka_broker.core.consumer_group.heartbeat import preferred_assignor
from kavka_broker.core.consumer_group.state import ConsumerGroup, ConsumerMember
from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kavka_broker.protocol.messages.consumer_group_describe_response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.describe_answers import describe_all
from kavka_broker.request.registry import api, listing
from kavka_broker.request.split_requests import Each

OF_CLASSIC_PROTOCOL, OF_CONSUMER_PROTOCOL = 0, 1
"""The type of a member."""
MEMBER_COST = 3  # of a slice
NAMES_PER_COST = 4  # that are sorted


@api(
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    versions=(0, 1),
    each=(Each("group_ids", "groups", per_turn=1, once=True),),
)
@listing
async def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, broker: Broker, client: Client
) -> ConsumerGroupDescribeResponse:
    groups = await describe_all(
        request,
        DescribedGroup,
        lambda shard: shard.consumers,
        partial(description_of, broker=broker),
        broker,
        client,
        is_served=is_served(broker.config, broker.metadata),
    )
    return ConsumerGroupDescribeResponse(groups=groups)


def description_of(group: ConsumerGroup, broker: Broker) -> Work[DescribedGroup]:
    """Describe a group as it is now: nothing changes it, another one takes its place."""
    members, topics, cost = list(group.members.values()), broker.metadata.topics, Cost()
    answer = DescribedGroup(
        ErrorCode.NONE,
        None,
        group.group_id,
        group.state.value,
        group.epoch,
        group.assignment_epoch,
        preferred_assignor(members, broker.groups.settings.consumer(group.group_id).assignors),
    )
    for member in members:
        answer.members.append((yield from member_of(member, group, topics, cost)))
    return answer


def member_of(member: ConsumerMember, group: ConsumerGroup, topics: Topics, cost: Cost) -> Work[Member]:
    if cost.add(MEMBER_COST + len(member.topics) // NAMES_PER_COST):
        yield
    return Member(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        sorted(member.topics),
        member.regex,
        (yield from assignment_of(all_of(member), topics, cost)),
        (yield from assignment_of(group.target_of(member.member_id), topics, cost)),
        OF_CONSUMER_PROTOCOL if member.classic is None else OF_CLASSIC_PROTOCOL,
    )


def all_of(member: ConsumerMember) -> dict[bytes, list[int]]:
    """Returns what a member has, with what it has yet to give up."""
    owned = dict[bytes, list[int]]()
    for partitions in (member.assigned, member.revoking):
        for topic_id, indexes in partitions.items():
            owned.setdefault(topic_id, []).extend(indexes)
    return owned


def assignment_of(partitions: Mapping[bytes, Collection[int]], topics: Topics, cost: Cost) -> Work[Assignment]:
    assignment = Assignment()
    for topic_id, indexes in partitions.items():
        if (topic := topics.by_id(topic_id)) is not None:
            assignment.topic_partitions.append(TopicPartitions(topic_id, topic.name, sorted(indexes)))
        if cost.add(1 + len(indexes)):
            yield
    return assignment
