"""StreamsGroupHeartbeat (88): a thread of a Kafka Streams application joins its group, stays or leaves (KIP-1071).

- Epoch 0 joins and brings the topology, -1 leaves; otherwise it is the member's epoch.
- The answer names the member's epoch, and when it is to heartbeat again: sooner while the group waits for a target or
  for internal topics (kavka.group.rebalance.heartbeat.interval.ms), where Apache Kafka always says the same.
- It has the member's tasks where it joins, where they have changed, and where what it owns shows that it has not heard
  of them; Apache Kafka does not say them again to a member whose answer was lost.
- What keeps the application from its work is a status: STALE_TOPOLOGY, MISSING_SOURCE_TOPICS,
  INCORRECTLY_PARTITIONED_TOPICS, MISSING_INTERNAL_TOPICS, SHUTDOWN_APPLICATION, ASSIGNMENT_DELAYED.
- Internal topics that are missing are created behind the answer in the name of the client, which needs CREATE on the
  cluster or on all of them. One that cannot be made is tried again after two heartbeat intervals; the status says why.
- A member that is behind in endpoint_information_epoch hears which partitions each endpoint of the group serves.
- A classic group without members becomes a streams group and keeps its offsets. Any other group of another protocol is
  GROUP_ID_NOT_FOUND.
- As in Apache Kafka 4.3, INVALID_REQUEST are static members, warm-up tasks, task offsets, patterns of source topics,
  and another topology than the group's.
- Without `streams` in group.coordinator.rebalance.protocols, or below streams.version 1, it is UNSUPPORTED_VERSION.
- Beyond group.streams.max.size, or 64 MiB of what all members of one partition of `__consumer_offsets` say of
  themselves with the topologies of their groups, it is GROUP_MAX_SIZE_REACHED.
- Answered when the group's records are committed.
Versions: flexible from 0, the first one.
"""

from collections.abc import Awaitable, Iterator, Sequence
from functools import partial

from kavka_broker.coordinator.group_commands import StreamsHeard
from kavka_broker.coordinator.streams_groups import is_served
from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.core.streams_group.checks import StreamsHeartbeat, check_heartbeat
from kavka_broker.core.streams_group.configured_topology import ConfiguredTopology
from kavka_broker.core.streams_group.endpoint_partitions import endpoint_partitions
from kavka_broker.core.streams_group.heartbeat import StreamsChange
from kavka_broker.core.streams_group.state import Endpoint, StreamsGroup, StreamsMember
from kavka_broker.core.streams_group.statuses import StatusCode
from kavka_broker.core.streams_group.tasks import Tasks
from kavka_broker.core.streams_group.topology import InternalTopic
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import streams_group_heartbeat_response as answers
from kavka_broker.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kavka_broker.protocol.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.heartbeat_answers import answer_heartbeat
from kavka_broker.request.registry import api

BYTES_MAX = 1024 * 1024
"""The bound on a heartbeat: a topology of some ten thousand topics."""
REASONS_MAX = 3  # why internal topics were not created

WithTopics = Sequence[tuple[str, tuple[int, ...]]]


@api(StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, versions=(0, 0), bytes_max=BYTES_MAX)
def streams_group_heartbeat(
    request: StreamsGroupHeartbeatRequest, broker: Broker, client: Client
) -> StreamsGroupHeartbeatResponse | Awaitable[StreamsGroupHeartbeatResponse]:
    if not is_served(broker.config, broker.metadata):
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    settings = broker.groups.settings.streams(request.group_id)

    def hear() -> StreamsHeard | Awaitable[StreamsHeard]:
        check_heartbeat(request)
        return broker.groups.shard(request.group_id).streams.heartbeat(heartbeat_of(request, client), settings)

    answer_of = partial(answer, broker=broker, client=client, again_ms=2 * settings.heartbeat_interval_ms)
    return answer_heartbeat(StreamsGroupHeartbeatResponse, hear, answer_of, broker.slices)


def heartbeat_of(request: StreamsGroupHeartbeatRequest, client: Client) -> StreamsHeartbeat:
    endpoint, tags = request.user_endpoint, request.client_tags
    roles = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    reported = tuple(role for role in roles if role is not None)
    return StreamsHeartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        client_id=client.client_id,
        client_host=f"/{client.address}",
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topology=request.topology,
        reported=reported or None,
        process_id=request.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=None if tags is None else tuple(sorted({tag.key: tag.value for tag in tags}.items())),
        endpoint_epoch=request.endpoint_information_epoch,
        shuts_down=request.shutdown_application,
    )


def answer(change: StreamsChange, broker: Broker, client: Client, again_ms: int) -> Work[StreamsGroupHeartbeatResponse]:
    """Answer a heartbeat, and have internal topics created."""
    response, cost = StreamsGroupHeartbeatResponse(0, ErrorCode.NONE, None, change.member_id, change.epoch), Cost()
    response.heartbeat_interval_ms = change.interval_ms
    response.endpoint_information_epoch = change.endpoint_epoch
    if change.assigned is not None:
        tasks = change.assigned.tasks
        response.active_tasks = task_ids(tasks.active)
        response.standby_tasks = task_ids(tasks.standby)
        response.warmup_tasks = task_ids(tasks.warmup)
        if cost.add(tasks.count):
            yield
    if change.tells_endpoints:
        assert change.group is not None, change
        response.partitions_by_user_endpoint = yield from endpoints_of(change.group, broker.metadata.topics, cost)
    details = {status.code: status.detail for status in change.statuses}
    if change.internal_topics:
        details[StatusCode.MISSING_INTERNAL_TOPICS] += create(change.internal_topics, broker, client, again_ms)
    response.status = [answers.Status(code, detail) for code, detail in details.items()]
    return response


def task_ids(tasks: Tasks) -> list[answers.TaskIds]:
    return [answers.TaskIds(part, sorted(partitions)) for part, partitions in sorted(tasks.items())]


# --- endpoints ------------------------------------------------------------------------------------------------------


def endpoints_of(group: StreamsGroup, topics: Topics, cost: Cost) -> Work[list[answers.EndpointToPartitions]]:
    """The partitions that each endpoint of the group serves. Nothing changes the group: another one takes its place."""
    found = list[answers.EndpointToPartitions]()
    if not group.endpoints or group.configured is None:
        return found
    for member in group.members.values():
        if member.endpoint is not None:
            found.append(endpoint_of(member, member.endpoint, group.configured, topics))
        if cost.add(1 + member.assigned.tasks.count):
            yield
    return found


def endpoint_of(
    member: StreamsMember, endpoint: Endpoint, configured: ConfiguredTopology, topics: Topics
) -> answers.EndpointToPartitions:
    tasks = member.assigned.tasks
    return answers.EndpointToPartitions(
        answers.Endpoint(endpoint.host, endpoint.port),
        partitions_of(endpoint_partitions(tasks.active, configured, topics)),
        partitions_of(endpoint_partitions(tasks.standby, configured, topics)),
    )


def partitions_of(served: WithTopics) -> list[answers.TopicPartition]:
    return [answers.TopicPartition(topic, list(indexes)) for topic, indexes in served]


# --- internal topics ------------------------------------------------------------------------------------------------


def create(topics: Sequence[InternalTopic], broker: Broker, client: Client, again_ms: int) -> str:
    """Have internal topics created; returns what the status has to say of it."""
    names = [topic.name for topic in topics]
    refused = [name for name in names if client.may_create is not None and not client.may_create(name)]
    if refused:
        return f"; Unauthorized to CREATE on topics {', '.join(refused)}."
    broker.create_internal_topics(topics, client, again_ms)
    failed = dict(failures(names, broker))
    if not failed:
        return ""
    reasons = ", ".join(f"{name} ({reason})" for name, reason in list(failed.items())[:REASONS_MAX])
    more = f" and {len(failed) - REASONS_MAX} more" if len(failed) > REASONS_MAX else ""
    return f"; Creation failed: {reasons}{more}."


def failures(names: Sequence[str], broker: Broker) -> Iterator[tuple[str, str]]:
    now_ms = broker.clock.monotonic_ms()
    for name in names:
        reason = broker.internal_topics.failure(name, now_ms)
        if reason is not None:
            yield name, reason
