"""WriteShareGroupState (85): a partition's leader writes down what its members have acknowledged (KIP-932).

The sender is a broker of the cluster.

- An earlier leader is FENCED_LEADER_EPOCH, an earlier state FENCED_STATE_EPOCH.
- A share partition without a state is INVALID_REQUEST.
- The start offset never moves back within a state.
- A broker that does not lead the share partition's part of `__share_group_state` is NOT_COORDINATOR; while it reads
  that, it is COORDINATOR_LOAD_IN_PROGRESS. A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION.
- Answered when the records are committed; COORDINATOR_NOT_AVAILABLE after share.coordinator.write.timeout.ms.
Versions: flexible; the count of records that are done within the window from 1.
"""

from kavka_broker.coordinator.share.share_state_requests import serve
from kavka_broker.protocol.messages.write_share_group_state_request import WriteShareGroupStateRequest
from kavka_broker.protocol.messages.write_share_group_state_response import WriteShareGroupStateResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import FETCH_BYTES_MAX, api
from kavka_broker.request.split_requests import Each


@api(
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    versions=(0, 1),
    each=(Each("topics.partitions", "results.partitions", per_turn=50),),
    bytes_max=FETCH_BYTES_MAX,
)
async def write_share_group_state(
    request: WriteShareGroupStateRequest, broker: Broker, client: Client
) -> WriteShareGroupStateResponse:
    client.is_exempt = True
    answer: WriteShareGroupStateResponse = await serve(request, broker.as_broker.sharing.coordinator, broker.slices)
    return answer
