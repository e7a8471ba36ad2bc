"""DeleteGroups (42): groups without members go, and their offsets with them.

- Each group stands alone: NON_EMPTY_GROUP where it has members, GROUP_ID_NOT_FOUND where it does not exist.
- The share coordinator deletes the states of a share group before the group goes; where it cannot, the group stays, and
  its error is the answer.
- Answered when the deletion is committed.
Versions: flexible from 2, an error message from 3, which Apache Kafka gives where a plugin for topologies fails, and
otherwise not.
"""

import asyncio
from collections.abc import Awaitable

from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each


@api(DeleteGroupsRequest, DeleteGroupsResponse, versions=(0, 3), each=(Each("groups_names", "results", per_turn=100),))
def delete_groups(
    request: DeleteGroupsRequest, broker: Broker, client: Client
) -> DeleteGroupsResponse | Awaitable[DeleteGroupsResponse]:
    results: list[DeletableGroupResult] = []
    waiting: list[tuple[DeletableGroupResult, Waiting]] = []
    for group_id in request.groups_names:
        result = DeletableGroupResult(group_id)
        results.append(result)
        try:
            pending = begin(broker.groups.shard(group_id), group_id)
        except BrokerError as error:
            result.error_code = error.code
        else:
            if pending is not None:
                waiting.append((result, pending))
    response = DeleteGroupsResponse(results=results)
    return when_committed(response, waiting) if waiting else response


def begin(shard: Shard, group_id: str) -> Waiting | None:
    """Delete a group; returns a future of its end, None if it is over. Raises BrokerError."""
    if shard.shares.get(group_id) is None:
        return shard.delete_group(group_id)
    return asyncio.ensure_future(delete_share_group(shard, group_id))


async def delete_share_group(shard: Shard, group_id: str) -> ErrorCode:
    try:
        await shard.share_offsets.delete_group(group_id)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


async def when_committed(
    response: DeleteGroupsResponse, waiting: list[tuple[DeletableGroupResult, Waiting]]
) -> DeleteGroupsResponse:
    for result, pending in waiting:
        result.error_code = ErrorCode(await pending)
    return response
