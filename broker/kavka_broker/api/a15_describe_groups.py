"""DescribeGroups (15): state, protocol and members of groups.

- What members subscribe to is told while the group is stable. What they were assigned last is told all the time, so
  tools know the owners of partitions also while the group rebalances; where an assignment was never handed in there is
  none.
- A group that does not exist is Dead without an error below version 6, GROUP_ID_NOT_FOUND with a message from there on.
  So is a group of the new protocol: ConsumerGroupDescribe tells of it.
Versions: authorized operations from 3, static members from 4, flexible from 5.
"""

import asyncio

from kavka_broker.core.group.state import ClassicGroup, GroupState, Member
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.describe_answers import EVERY_OPERATION
from kavka_broker.request.registry import api, listing
from kavka_broker.request.split_requests import Each

NOT_FOUND_VERSION = 6
MEMBER_COST = 2  # of a slice


@api(
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    versions=(0, 6),
    each=(Each("groups", "groups", per_turn=1, once=True),),
)
@listing
def describe_groups(
    request: DescribeGroupsRequest, broker: Broker, client: Client
) -> DescribeGroupsResponse | asyncio.Task[DescribeGroupsResponse]:
    return broker.slices.run(describe_all(request, broker, client.version))


def describe_all(request: DescribeGroupsRequest, broker: Broker, version: int) -> Work[DescribeGroupsResponse]:
    answer, cost = DescribeGroupsResponse(), Cost()
    for group_id in request.groups:
        group = yield from describe(group_id, broker, version, cost)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = EVERY_OPERATION
        answer.groups.append(group)
    return answer


def describe(group_id: str, broker: Broker, version: int, cost: Cost) -> Work[DescribedGroup]:
    try:
        image = broker.groups.shard(group_id).image
    except BrokerError as error:
        return DescribedGroup(error.code, error.message, group_id)
    group = image.groups.get(group_id)
    if group is None:
        dead = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= NOT_FOUND_VERSION:
            dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            what = "not found" if image.find(group_id) is None else "is not a classic group"
            dead.error_message = f"Group {group_id} {what}."
        return dead
    protocol = group.protocol_name if group.state is GroupState.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=(yield from members_of(group, protocol, cost)),
    )


def members_of(group: ClassicGroup, protocol: str | None, cost: Cost) -> Work[list[DescribedGroupMember]]:
    members = []
    for member in list(group.members.values()):
        members.append(member_of(member, protocol))
        if cost.add(MEMBER_COST):
            yield
    return members


def member_of(member: Member, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        b"" if protocol is None else member.metadata(protocol),
        member.assignment,
    )
