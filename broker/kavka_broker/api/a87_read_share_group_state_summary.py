"""ReadShareGroupStateSummary (87): the group's coordinator asks how far share partitions are (KIP-932).

The sender is a broker of the cluster.

- A share partition without a state has the start offset -1.
- A broker that does not lead the share partition's part of `__share_group_state` is NOT_COORDINATOR; while it reads
  that, it is COORDINATOR_LOAD_IN_PROGRESS. A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION.
- Answered when the records are committed; COORDINATOR_NOT_AVAILABLE after share.coordinator.write.timeout.ms.
Versions: flexible; the count of records that are done within the window from 1.
"""

from kavka_broker.coordinator.share.share_state_requests import serve
from kavka_broker.protocol.messages.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest
from kavka_broker.protocol.messages.read_share_group_state_summary_response import ReadShareGroupStateSummaryResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import FETCH_BYTES_MAX, api
from kavka_broker.request.split_requests import Each


@api(
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    versions=(0, 1),
    each=(Each("topics.partitions", "results.partitions", per_turn=50),),
    bytes_max=FETCH_BYTES_MAX,
)
async def read_share_group_state_summary(
    request: ReadShareGroupStateSummaryRequest, broker: Broker, client: Client
) -> ReadShareGroupStateSummaryResponse:
    client.is_exempt = True
    answer: ReadShareGroupStateSummaryResponse = await serve(
        request, broker.as_broker.sharing.coordinator, broker.slices
    )
    return answer
