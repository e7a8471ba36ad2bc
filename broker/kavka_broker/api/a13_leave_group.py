"""LeaveGroup (13): members go, and the others rebalance at once.

- One member below version 3; a batch from there on, each with an error of its own, so that an operator can also remove
  static members by their instance ids.
- Members of a consumer group (KIP-848) leave in one step, of whichever protocol they are.
Versions: flexible from 4, a reason from 5.
"""

from collections.abc import Awaitable, Sequence

from kavka_broker.core.group.membership import Departure
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.leave_group_request import LeaveGroupRequest
from kavka_broker.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each

BATCH_VERSION = 3


@api(LeaveGroupRequest, LeaveGroupResponse, versions=(0, 5), each=(Each("members", "members", per_turn=100),))
def leave_group(
    request: LeaveGroupRequest, broker: Broker, client: Client
) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    departures = departures_of(request, client.version)
    errors = broker.groups.shard(request.group_id).leave(request.group_id, departures)
    if isinstance(errors, list):
        return answer_of(request, errors, client.version)
    return answer_later(request, errors, client.version)


async def answer_later(
    request: LeaveGroupRequest, errors: Awaitable[list[ErrorCode]], version: int
) -> LeaveGroupResponse:
    return answer_of(request, await errors, version)


def departures_of(request: LeaveGroupRequest, version: int) -> list[Departure]:
    if version < BATCH_VERSION:
        return [Departure(request.member_id)]
    return [Departure(member.member_id, member.group_instance_id) for member in request.members]


def answer_of(request: LeaveGroupRequest, errors: Sequence[ErrorCode], version: int) -> LeaveGroupResponse:
    if version < BATCH_VERSION:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member.member_id, member.group_instance_id, error)
            for member, error in zip(request.members, errors, strict=True)
        ]
    )
