"""DeleteShareGroupState (86): the group's coordinator forgets share partitions (KIP-932).

The sender is a broker of the cluster.

- A share partition without a state is no error.
- A broker that does not lead the share partition's part of `__share_group_state` is NOT_COORDINATOR; while it reads
  that, it is COORDINATOR_LOAD_IN_PROGRESS. A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION.
- Answered when the records are committed; COORDINATOR_NOT_AVAILABLE after share.coordinator.write.timeout.ms.
Versions: flexible, one.
"""

from kavka_broker.coordinator.share.share_state_requests import serve
from kavka_broker.protocol.messages.delete_share_group_state_request import DeleteShareGroupStateRequest
from kavka_broker.protocol.messages.delete_share_group_state_response import DeleteShareGroupStateResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import FETCH_BYTES_MAX, api
from kavka_broker.request.split_requests import Each


@api(
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    versions=(0, 0),
    each=(Each("topics.partitions", "results.partitions", per_turn=50),),
    bytes_max=FETCH_BYTES_MAX,
)
async def delete_share_group_state(
    request: DeleteShareGroupStateRequest, broker: Broker, client: Client
) -> DeleteShareGroupStateResponse:
    client.is_exempt = True
    answer: DeleteShareGroupStateResponse = await serve(request, broker.as_broker.sharing.coordinator, broker.slices)
    return answer
