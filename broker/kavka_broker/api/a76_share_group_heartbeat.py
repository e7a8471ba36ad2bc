"""ShareGroupHeartbeat (76): a member of a share group joins, stays or leaves (KIP-932).

- Epoch 0 joins, -1 leaves; otherwise it is the member's epoch.
- The answer names the member's epoch, and when it is to heartbeat again: sooner while its group waits for partitions
  (kavka.group.rebalance.heartbeat.interval.ms), where Apache Kafka always says the same.
- It has an assignment where the member named its topics, or where it has changed.
- A partition is assigned once the share coordinator has its state, which the first heartbeat that subscribes to it asks
  for; the assignor is `simple`.
- A group of another protocol is GROUP_ID_NOT_FOUND.
- Below share.version 1 it is UNSUPPORTED_VERSION.
- Beyond group.share.max.size, or 64 MiB of what all members of one partition of `__consumer_offsets` say of themselves
  with the partitions of their groups, it is GROUP_MAX_SIZE_REACHED; more than 10,000 names of topics are
  INVALID_REQUEST.
- Answered when the group's records are committed.
Versions: 1, flexible.
"""

from collections.abc import Awaitable

from kavka_broker.coordinator.groups.group_commands import ShareHeard
from kavka_broker.coordinator.groups.share_groups import is_served
from kavka_broker.core.share_group.checks import ShareHeartbeat, check_heartbeat
from kavka_broker.core.share_group.heartbeat import ShareChange
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kavka_broker.protocol.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.heartbeat_answers import answer_heartbeat
from kavka_broker.request.registry import api

BYTES_MAX = 1024 * 1024
"""The bound on a heartbeat: ten thousand names of topics."""


@api(ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, versions=(1, 1), bytes_max=BYTES_MAX)
def share_group_heartbeat(
    request: ShareGroupHeartbeatRequest, broker: Broker, client: Client
) -> ShareGroupHeartbeatResponse | Awaitable[ShareGroupHeartbeatResponse]:
    if not is_served(broker.metadata):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    beat = ShareHeartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        client.client_id,
        f"/{client.address}",
        request.rack_id,
        request.subscribed_topic_names,
    )
    settings = broker.groups.settings.share(request.group_id)

    def hear() -> ShareHeard | Awaitable[ShareHeard]:
        check_heartbeat(beat)
        return broker.groups.shard(request.group_id).shares.heartbeat(beat, settings)

    return answer_heartbeat(ShareGroupHeartbeatResponse, hear, answer_of, broker.slices)


def answer_of(change: ShareChange) -> Work[ShareGroupHeartbeatResponse]:
    response, cost = ShareGroupHeartbeatResponse(0, ErrorCode.NONE, None, change.member_id, change.epoch), Cost()
    response.heartbeat_interval_ms = change.interval_ms
    if change.assigned is not None:
        response.assignment = Assignment()
        for topic_id, indexes in change.assigned.items():
            response.assignment.topic_partitions.append(TopicPartitions(topic_id, sorted(indexes)))
            if cost.add(1 + len(indexes)):
                yield
    return response
