"""DeleteGroups (42): groups without members go, and their offsets with them.

- Each group stands alone: NON_EMPTY_GROUP where it has members, GROUP_ID_NOT_FOUND where it does not exist.
- Answered when the deletion is committed.
Versions: flexible from 2.
"""

from collections.abc import Awaitable

from kavka_broker.coordinator.transactional_offsets import Waiting
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.request_parts import Each


@api(DeleteGroupsRequest, DeleteGroupsResponse, versions=(0, 2), each=(Each("groups_names", "results", per_turn=100),))
def delete_groups(
    request: DeleteGroupsRequest, broker: Broker, client: Client
) -> DeleteGroupsResponse | Awaitable[DeleteGroupsResponse]:
    results: list[DeletableGroupResult] = []
    waiting: list[tuple[DeletableGroupResult, Waiting]] = []
    for group_id in request.groups_names:
        result = DeletableGroupResult(group_id)
        results.append(result)
        try:
            pending = broker.groups.shard(group_id).delete_group(group_id)
        except BrokerError as error:
            result.error_code = error.code
        else:
            if pending is not None:
                waiting.append((result, pending))
    response = DeleteGroupsResponse(results=results)
    return when_committed(response, waiting) if waiting else response


async def when_committed(
    response: DeleteGroupsResponse, waiting: list[tuple[DeletableGroupResult, Waiting]]
) -> DeleteGroupsResponse:
    for result, pending in waiting:
        result.error_code = ErrorCode(await pending)
    return response
