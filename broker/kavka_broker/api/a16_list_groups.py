"""ListGroups (16): the groups that this broker coordinates.

- Filters by state and by type are compared without regard to case; none given means all.
- A group whose members spoke another protocol, with Apache Kafka on the same directory, keeps its type (`consumer`,
  `streams`) until a classic member joins.
- While a partition is being read the list would not be whole: COORDINATOR_LOAD_IN_PROGRESS.
Versions: flexible from 3, states from 4, types from 5.
"""

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.registry import SMALL_BYTES_MAX, api
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse

STATE_VERSION = 4
TYPE_VERSION = 5


@api(ListGroupsRequest, ListGroupsResponse, versions=(0, 5), bytes_max=SMALL_BYTES_MAX)
def list_groups(request: ListGroupsRequest, broker: Broker, client: Client) -> ListGroupsResponse:
    if broker.groups.is_loading:
        raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group.group_id,
                group.protocol_type or "",
                group.state.value if client.version >= STATE_VERSION else "",
                shard.image.type_of(group) if client.version >= TYPE_VERSION else "",
            )
            for shard in broker.groups.shards()
            for group in shard.image.groups.values()
            if not states or group.state.value.lower() in states
            if not types or shard.image.type_of(group) in types
        ]
    )
