"""ShareAcknowledge (79): a member of a share group says what became of records that it has acquired (KIP-932).

- 1 accepts a record, 2 releases it for another delivery, 3 rejects it, 4 renews its lock (KIP-1222), and 0 says that
  there is no record at that offset. What is said of a partition counts as a whole.
- Records that the member has not acquired, or no longer, are INVALID_RECORD_STATE; offsets that were never delivered
  are INVALID_REQUEST. Offsets that the group has left behind are ignored.
- Answered when the share coordinator has it; where it has not, the records are the member's still.
- The request has the next epoch of the member's session, and -1 ends that. Epoch 0 is INVALID_SHARE_SESSION_EPOCH.
- Without share.version 1 it is UNSUPPORTED_VERSION.
Versions: flexible; renewed locks from 2.
"""

from kavka_broker.api.a78_share_fetch import refusal_of
from kavka_broker.core.metadata.image.leader_hint import endpoint_of, leader_of
from kavka_broker.core.share.sessions import FINAL_EPOCH, INITIAL_EPOCH
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.share_acknowledge_request import ShareAcknowledgeRequest
from kavka_broker.protocol.messages.share_acknowledge_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import FETCH_BYTES_MAX, api
from kavka_broker.request.share_acknowledgements import (
    PARTITION_COST,
    Place,
    begin_all,
    check_member,
    is_served,
    said_in,
    settled,
)


@api(ShareAcknowledgeRequest, ShareAcknowledgeResponse, versions=(1, 2), bytes_max=FETCH_BYTES_MAX)
async def share_acknowledge(
    request: ShareAcknowledgeRequest, broker: Broker, client: Client
) -> ShareAcknowledgeResponse:
    if not is_served(broker):
        return ShareAcknowledgeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    shares = broker.as_broker.sharing.fetches
    try:
        key = check_member(request.group_id, request.member_id)
        if request.share_session_epoch == INITIAL_EPOCH:
            raise BrokerError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = await broker.slices.whole(shares.resume(key, request.share_session_epoch))
    except BrokerError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=error.message or None)
    try:
        said = await broker.slices.whole(said_in(request.topics, Cost()))
        refuses = refusal_of(broker, client)
        problems = await settled(await begin_all(key, said, refuses, broker, renews=request.is_renew_ack))
        if request.share_session_epoch == FINAL_EPOCH:
            shares.leave(session)
        return await broker.slices.whole(answer(request, problems, broker, client))
    finally:
        session.is_busy = False


def answer(
    request: ShareAcknowledgeRequest, problems: dict[Place, BrokerError | None], broker: Broker, client: Client
) -> Work[ShareAcknowledgeResponse]:
    cost = Cost()
    settings = broker.as_broker.sharing.fetches.settings(request.group_id or "")
    response = ShareAcknowledgeResponse(acquisition_lock_timeout_ms=settings.record_lock_duration_ms)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    leaders: dict[int, None] = {}
    for place, problem in problems.items():
        data = PartitionData(place[1])
        if problem is not None:
            data.error_code, data.error_message = problem.code, problem.message or None
        if data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            data.current_leader = LeaderIdAndEpoch(*leader_of(*place, broker.metadata))
            leaders[data.current_leader.leader_id] = None
        if place[0] not in topics:
            topics[place[0]] = ShareAcknowledgeTopicResponse(place[0], [])
        topics[place[0]].partitions.append(data)
        if cost.add(PARTITION_COST):
            yield
    response.responses = list(topics.values())
    response.node_endpoints = [
        endpoint
        for leader in leaders
        for endpoint in endpoint_of(leader, client.listener, broker.metadata, NodeEndpoint)
    ]
    return response
