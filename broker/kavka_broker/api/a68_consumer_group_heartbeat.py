"""ConsumerGroupHeartbeat (68): a member of a group of the new protocol joins, stays or leaves (KIP-848).

- Epoch 0 joins, -1 leaves, -2 leaves a static member's place to its successor; otherwise it is the member's epoch.
- The answer names the member's epoch, and when it is to heartbeat again: sooner while it waits for its assignment
  (kavka.group.rebalance.heartbeat.interval.ms), where Apache Kafka always says the same.
- The first heartbeat in a group without members is held for 20 ms. Where others come meanwhile, the first assignment
  waits until no member has joined for a while, and not where group.consumer.assignment.interval.ms is 0.
- It has an assignment where the member said everything, or where it has changed.
- A member gets what the others have given up: it heartbeats until it has its whole target.
- Topics are subscribed to by their names, and by an expression (RE2) that the whole name has to match. It matches what
  the client may DESCRIBE, and is matched again when topics have changed (after 10 s at the earliest) and each
  group.consumer.regex.refresh.interval.ms. One that cannot be read, or has more than 1,000 characters, is
  INVALID_REGULAR_EXPRESSION.
- A group of the classic protocol becomes a consumer group with its members (group.consumer.migration.policy), who go on
  by JoinGroup, SyncGroup and Heartbeat. GROUP_ID_NOT_FOUND where the policy forbids it, where the group is not one of
  consumers or is larger than group.consumer.max.size, and where a custom assignor has user data in assignments.
- A group whose last member of the new protocol leaves or is fenced becomes a classic group again, and rebalances, if
  the policy allows it and it has no more than group.max.size members.
- Without `consumer` in group.coordinator.rebalance.protocols, or below group.version 1, it is UNSUPPORTED_VERSION.
- Beyond group.consumer.max.size, or 64 MiB of what all members of one partition of `__consumer_offsets` say of
  themselves and of the topics that their expressions match, it is GROUP_MAX_SIZE_REACHED; more than 10,000 names of
  topics are INVALID_REQUEST.
- Answered when the group's records are committed.
Versions: flexible from 0; from 1 the client makes the member id, and may name an expression.
"""

from collections.abc import Awaitable

from kavka_broker.coordinator.groups.consumer_groups import is_served
from kavka_broker.coordinator.groups.group_commands import Heard
from kavka_broker.core.consumer_group.checks import Heartbeat, check_heartbeat
from kavka_broker.core.consumer_group.heartbeat import Change
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kavka_broker.protocol.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.heartbeat_answers import answer_heartbeat
from kavka_broker.request.registry import api

CLIENT_ID_VERSION = 1
BYTES_MAX = 1024 * 1024
"""The bound on a heartbeat: ten thousand names of topics, and a hundred thousand partitions."""


@api(ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, versions=(0, 1), bytes_max=BYTES_MAX)
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, broker: Broker, client: Client
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    if not is_served(broker.config, broker.metadata):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    settings = broker.groups.settings.consumer(request.group_id)

    def hear() -> Heard | Awaitable[Heard]:
        beat = heartbeat_of(request, broker, client)
        check_heartbeat(beat, settings.assignors, needs_member_id=client.version >= CLIENT_ID_VERSION)
        return broker.groups.shard(request.group_id).consumers.heartbeat(beat, settings, client.may_describe)

    return answer_heartbeat(ConsumerGroupHeartbeatResponse, hear, answer_of, broker.slices)


def answer_of(change: Change) -> Work[ConsumerGroupHeartbeatResponse]:
    response, cost = ConsumerGroupHeartbeatResponse(0, ErrorCode.NONE, None, change.member_id, change.epoch), Cost()
    response.heartbeat_interval_ms = change.interval_ms
    if change.assigned is not None:
        response.assignment = Assignment()
        for topic_id, indexes in change.assigned.items():
            response.assignment.topic_partitions.append(TopicPartitions(topic_id, sorted(indexes)))
            if cost.add(1 + len(indexes)):
                yield
    return response


def heartbeat_of(request: ConsumerGroupHeartbeatRequest, broker: Broker, client: Client) -> Heartbeat:
    owned, member_id = request.topic_partitions, request.member_id
    if not member_id and request.member_epoch == 0 and client.version < CLIENT_ID_VERSION:
        member_id = broker.groups.new_member_suffix()
    return Heartbeat(
        request.group_id,
        member_id,
        request.member_epoch,
        client_id=client.client_id,
        client_host=f"/{client.address}",
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=request.subscribed_topic_names,
        regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=None if owned is None else {topic.topic_id: topic.partitions for topic in owned},
    )
