"""SyncGroup (14): get one's assignment; the leader hands in everybody's.

- A follower waits for the leader; all are answered when the assignment is committed in `__consumer_offsets`.
- Whoever does not sync within the rebalance timeout is dropped.
Versions: static members from 3, flexible from 4; from 5 protocol type and name must be given and be the group's.
"""

import asyncio

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.registry import api
from kavka_broker.core.group.sync import Sync
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.sync_group_request import SyncGroupRequest
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse

PROTOCOL_VERSION = 5

Token = asyncio.Future[SyncGroupResponse]


@api(SyncGroupRequest, SyncGroupResponse, versions=(0, 5))
def sync_group(request: SyncGroupRequest, broker: Broker, client: Client) -> SyncGroupResponse | Token:
    if not request.group_id:
        return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    if client.version >= PROTOCOL_VERSION and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    shard = broker.groups.shard(request.group_id)
    token: Token = asyncio.get_running_loop().create_future()
    command = Sync(
        token,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        {one.member_id: one.assignment for one in request.assignments},
    )
    shard.sync(request.group_id, command)
    return token.result() if token.done() else token
