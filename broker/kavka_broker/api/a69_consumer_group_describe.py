"""ConsumerGroupDescribe (69): groups of the new protocol (KIP-848), their members, what each has and is to have.

- A group that does not exist, or is a classic one, is GROUP_ID_NOT_FOUND.
- Topics that have been deleted are left out of assignments.
Versions: flexible from 0, the type of each member from 1.
"""

import asyncio
from collections.abc import Collection, Mapping

from kavka_broker.coordinator.consumer_groups import is_served
from kavka_broker.core.consumer_group.heartbeat import preferred_assignor
from kavka_broker.core.consumer_group.state import ConsumerGroup, ConsumerMember
from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kavka_broker.protocol.messages.consumer_group_describe_response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.request_parts import Each

OF_CONSUMER_PROTOCOL = 1
"""The type of a member; a member of the classic protocol would be 0."""
MEMBER_COST = 3  # of a slice


@api(
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    versions=(0, 1),
    each=(Each("group_ids", "groups", per_turn=100),),
)
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, broker: Broker, client: Client
) -> asyncio.Task[ConsumerGroupDescribeResponse] | ConsumerGroupDescribeResponse:
    del client
    if not is_served(broker.config, broker.metadata):
        code = ErrorCode.UNSUPPORTED_VERSION
        return ConsumerGroupDescribeResponse(
            groups=[DescribedGroup(code, None, group_id) for group_id in request.group_ids]
        )
    return broker.slices.run(describe_all(request, broker))


def describe_all(request: ConsumerGroupDescribeRequest, broker: Broker) -> Work[ConsumerGroupDescribeResponse]:
    answer, cost = ConsumerGroupDescribeResponse(), Cost()
    for group_id in request.group_ids:
        answer.groups.append((yield from describe(group_id, broker, cost)))
    return answer


def describe(group_id: str, broker: Broker, cost: Cost) -> Work[DescribedGroup]:
    try:
        group = broker.groups.shard(group_id).consumers.existing(group_id)
    except BrokerError as error:
        return DescribedGroup(error.code, error.message or None, group_id)
    members, topics = list(group.members.values()), broker.metadata.topics
    answer = DescribedGroup(
        ErrorCode.NONE,
        None,
        group_id,
        group.state.value,
        group.epoch,
        group.assignment_epoch,
        preferred_assignor(members, broker.groups.settings.consumer(group_id).assignors),
    )
    for member in members:
        answer.members.append(member_of(member, group, topics))
        if cost.add(MEMBER_COST + len(member.assigned)):
            yield
    return answer


def member_of(member: ConsumerMember, group: ConsumerGroup, topics: Topics) -> Member:
    return Member(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        sorted(member.topics),
        member.regex,
        assignment_of(all_of(member), topics),
        assignment_of(group.target_of(member.member_id), topics),
        OF_CONSUMER_PROTOCOL,
    )


def all_of(member: ConsumerMember) -> dict[bytes, list[int]]:
    """Returns what a member has, with what it has yet to give up."""
    owned = dict[bytes, list[int]]()
    for partitions in (member.assigned, member.revoking):
        for topic_id, indexes in partitions.items():
            owned.setdefault(topic_id, []).extend(indexes)
    return owned


def assignment_of(partitions: Mapping[bytes, Collection[int]], topics: Topics) -> Assignment:
    return Assignment(
        [
            TopicPartitions(topic_id, topic.name, sorted(indexes))
            for topic_id, indexes in partitions.items()
            if (topic := topics.by_id(topic_id)) is not None
        ]
    )
