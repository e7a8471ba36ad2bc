"""Heartbeat (12): a member is there.

- REBALANCE_IN_PROGRESS asks it to join again; ILLEGAL_GENERATION and UNKNOWN_MEMBER_ID say that it is out already.
- A static member whose place another has taken hears FENCED_INSTANCE_ID.
Versions: static members from 3, flexible from 4.
"""

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.heartbeat_request import HeartbeatRequest
from kavka_broker.protocol.messages.heartbeat_response import HeartbeatResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api


@api(HeartbeatRequest, HeartbeatResponse, versions=(0, 4))
def heartbeat(request: HeartbeatRequest, broker: Broker, client: Client) -> HeartbeatResponse:
    group_id = request.group_id
    if not group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    error = broker.groups.shard(group_id).heartbeat(
        group_id, request.generation_id, request.member_id, request.group_instance_id
    )
    return HeartbeatResponse(error_code=error)
