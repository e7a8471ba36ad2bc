"""SyncGroup (14): get one's assignment; the leader hands in everybody's.

- A follower waits for the leader; all are answered when the assignment is committed in `__consumer_offsets`.
- What waits is the answer: the bytes of the request do not count in `queued.max.request.bytes` any more.
- Assignments that find no room beside those of other groups (`JoinGroup`) are COORDINATOR_NOT_AVAILABLE.
- Whoever does not sync within the rebalance timeout is dropped.
Versions: static members from 3, flexible from 4; from 5 protocol type and name must be given and be the group's.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from kavka_broker.core.group.sync import Sync
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api

PROTOCOL_VERSION = 5
ASSIGNMENTS_PER_TURN: Final = 1_000

Token = asyncio.Future[SyncGroupResponse]


@api(SyncGroupRequest, SyncGroupResponse, versions=(0, 5))
def sync_group(
    request: SyncGroupRequest, broker: Broker, client: Client
) -> SyncGroupResponse | Token | Awaitable[SyncGroupResponse]:
    if not request.group_id:
        return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    if client.version >= PROTOCOL_VERSION and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if len(request.assignments) > ASSIGNMENTS_PER_TURN:
        return sync_many(request, broker, client)
    return answer_to(request, by_member(request.assignments), broker, client)


async def sync_many(request: SyncGroupRequest, broker: Broker, client: Client) -> SyncGroupResponse:
    """As `sync`, for a large group: the leader's assignments are read in slices."""
    assignments: dict[str, bytes] = {}
    for start in range(0, len(request.assignments), ASSIGNMENTS_PER_TURN):
        await broker.slices.turn()
        assignments |= by_member(request.assignments[start : start + ASSIGNMENTS_PER_TURN])
    answer = answer_to(request, assignments, broker, client)
    del request, assignments  # frees the request, whose bytes no longer count
    return answer if isinstance(answer, SyncGroupResponse) else await answer


def by_member(assignments: Sequence[SyncGroupRequestAssignment]) -> dict[str, bytes]:
    return {assignment.member_id: assignment.assignment for assignment in assignments}


def answer_to(
    request: SyncGroupRequest, assignments: Mapping[str, bytes], broker: Broker, client: Client
) -> SyncGroupResponse | Token:
    shard = broker.groups.shard(request.group_id)
    token: Token = asyncio.get_running_loop().create_future()
    command = Sync(
        token,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        assignments,
    )
    shard.sync(request.group_id, command)
    client.forget_request()
    return token.result() if token.done() else token
