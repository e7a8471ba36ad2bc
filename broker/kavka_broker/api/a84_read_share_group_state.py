"""ReadShareGroupState (84): a partition's new leader takes over what its members have acknowledged (KIP-932).

The sender is a broker of the cluster.

- From then on earlier leaders write no more: they are FENCED_LEADER_EPOCH, and so is an earlier one that reads.
- A share partition without a state is INVALID_REQUEST.
- A broker that does not lead the share partition's part of `__share_group_state` is NOT_COORDINATOR; while it reads
  that, it is COORDINATOR_LOAD_IN_PROGRESS. A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION.
- Answered when the records are committed; COORDINATOR_NOT_AVAILABLE after share.coordinator.write.timeout.ms.
Versions: flexible, one.
"""

from kavka_broker.coordinator.share.share_state_requests import serve
from kavka_broker.protocol.messages.read_share_group_state_request import ReadShareGroupStateRequest
from kavka_broker.protocol.messages.read_share_group_state_response import ReadShareGroupStateResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import FETCH_BYTES_MAX, api
from kavka_broker.request.split_requests import Each


@api(
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    versions=(0, 0),
    each=(Each("topics.partitions", "results.partitions", per_turn=50, once=True),),
    bytes_max=FETCH_BYTES_MAX,
)
async def read_share_group_state(
    request: ReadShareGroupStateRequest, broker: Broker, client: Client
) -> ReadShareGroupStateResponse:
    client.is_exempt = True
    answer: ReadShareGroupStateResponse = await serve(request, broker.as_broker.sharing.coordinator, broker.slices)
    return answer
