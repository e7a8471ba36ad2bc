"""ListGroups (16): the groups that this broker coordinates.

- Filters by state and by type are compared without regard to case; none given means all.
- While a partition is being read the list would not be whole: COORDINATOR_LOAD_IN_PROGRESS.
Versions: flexible from 3, states from 4, types from 5.
"""

import asyncio

from kavka_broker.core.group.offsets import AnyGroup
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import SMALL_BYTES_MAX, api, listing

STATE_VERSION = 4
TYPE_VERSION = 5
MEMBERS_PER_STEP = 20
"""Members that the state of a group of the new protocol is read from, in the time of a group without any."""


@api(ListGroupsRequest, ListGroupsResponse, versions=(0, 5), bytes_max=SMALL_BYTES_MAX)
@listing
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
        image = shard.image
        groups: list[AnyGroup] = [
            *image.groups.values(),
            *image.consumer_groups.values(),
            *image.share_groups.values(),
            *image.streams_groups.values(),
        ]
        for group in groups:
            if cost.add(1 + len(group.members) // MEMBERS_PER_STEP):
                yield
            kind, state = image.type_of(group), group.state.value
            if (not states or state.lower() in states) and (not types or kind in types):
                answer.groups.append(listed(group, kind, state, version))
    return answer


def listed(group: AnyGroup, kind: str, state: str, version: int) -> ListedGroup:
    return ListedGroup(
        group.group_id,
        (group.protocol_type or "") if isinstance(group, ClassicGroup) else kind,
        state if version >= STATE_VERSION else "",
        kind if version >= TYPE_VERSION else "",
    )
