"""InitializeShareGroupState (83): the group's coordinator begins the state of share partitions (KIP-932).

The sender is a broker of the cluster.

- The state of a share partition that has one already begins again: at this offset, and with nothing acknowledged.
- A state epoch below the known one is FENCED_STATE_EPOCH.
- A broker that does not lead the share partition's part of `__share_group_state` is NOT_COORDINATOR; while it reads
  that, it is COORDINATOR_LOAD_IN_PROGRESS. A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION.
- Answered when the records are committed; COORDINATOR_NOT_AVAILABLE after share.coordinator.write.timeout.ms.
Versions: flexible, one.
"""

from kavka_broker.coordinator.share.share_state_requests import serve
from kavka_broker.protocol.messages.initialize_share_group_state_request import InitializeShareGroupStateRequest
from kavka_broker.protocol.messages.initialize_share_group_state_response import InitializeShareGroupStateResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import FETCH_BYTES_MAX, api
from kavka_broker.request.split_requests import Each


@api(
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    versions=(0, 0),
    each=(Each("topics.partitions", "results.partitions", per_turn=50),),
    bytes_max=FETCH_BYTES_MAX,
)
async def initialize_share_group_state(
    request: InitializeShareGroupStateRequest, broker: Broker, client: Client
) -> InitializeShareGroupStateResponse:
    client.is_exempt = True
    answer: InitializeShareGroupStateResponse = await serve(
        request, broker.as_broker.sharing.coordinator, broker.slices
    )
    return answer
