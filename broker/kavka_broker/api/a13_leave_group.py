"""LeaveGroup (13): members go, and the others rebalance at once.

- One member below version 3; a batch from there on, each with an error of its own, so that an operator can also remove
  static members by their instance ids.
Versions: flexible from 4, a reason from 5.
"""

from kavka_broker.core.group.membership import Departure
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.leave_group_request import LeaveGroupRequest
from kavka_broker.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.request_parts import Each

BATCH_VERSION = 3


@api(LeaveGroupRequest, LeaveGroupResponse, versions=(0, 5), each=(Each("members", "members", per_turn=100),))
def leave_group(request: LeaveGroupRequest, broker: Broker, client: Client) -> LeaveGroupResponse:
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = broker.groups.shard(request.group_id)
    if client.version < BATCH_VERSION:
        (error,) = shard.leave(request.group_id, [Departure(request.member_id)])
        return LeaveGroupResponse(error_code=error)
    members = request.members
    errors = shard.leave(
        request.group_id, [Departure(member.member_id, member.group_instance_id) for member in members]
    )
    return LeaveGroupResponse(
        members=[
            MemberResponse(member.member_id, member.group_instance_id, error)
            for member, error in zip(members, errors, strict=True)
        ]
    )
