"""ListGroups (16): the groups that this broker coordinates.

- Filters by state and by type are compared without regard to case; none given means all.
- A group whose members spoke another protocol, with Apache Kafka on the same directory, keeps its type (`consumer`,
  `streams`) until a classic member joins.
- While a partition is being read the list would not be whole: COORDINATOR_LOAD_IN_PROGRESS.
Versions: flexible from 3, states from 4, types from 5.
"""

import asyncio

from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import SMALL_BYTES_MAX, api

STATE_VERSION = 4
TYPE_VERSION = 5


@api(ListGroupsRequest, ListGroupsResponse, versions=(0, 5), bytes_max=SMALL_BYTES_MAX)
def list_groups(
    request: ListGroupsRequest, broker: Broker, client: Client
) -> ListGroupsResponse | asyncio.Task[ListGroupsResponse]:
    """Answer the groups that this broker coordinates. Raises BrokerError while one of its shards is loading."""
    if broker.groups.is_loading:
        raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return broker.slices.run(list_all(request, broker, client.version))


def list_all(request: ListGroupsRequest, broker: Broker, version: int) -> Work[ListGroupsResponse]:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    answer, cost = ListGroupsResponse(), Cost()
    for shard in list(broker.groups.shards()):
        for group in list(shard.image.groups.values()):
            if cost.add(1):
                yield
            kind = shard.image.type_of(group)
            if (not states or group.state.value.lower() in states) and (not types or kind in types):
                answer.groups.append(listed(group, kind, version))
    return answer


def listed(group: ClassicGroup, kind: str, version: int) -> ListedGroup:
    return ListedGroup(
        group.group_id,
        group.protocol_type or "",
        group.state.value if version >= STATE_VERSION else "",
        kind if version >= TYPE_VERSION else "",
    )
