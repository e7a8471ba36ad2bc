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
- Beyond group.streams.max.size, or 64 MiB for the members of one partition of `__consumer_offsets` with their tasks
  and topologies, it is GROUP_MAX_SIZE_REACHED.
- Answered when the group's records are committed.
Versions: flexible from 0, the first one.
"""

from collections.abc import Awaitable, Iterator, Sequence
from functools import partial

from kavka_broker.coordinator.groups.group_commands import StreamsHeard
from kavka_broker.coordinator.groups.streams_groups import is_served
from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.core.streams_group.checks import StreamsHeartbeat, check_heartbeat
from kavka_broker.core.streams_group.endpoint_partitions import endpoint_partitions
from kavka_broker.core.streams_group.heartbeat import StreamsChange
from kavka_broker.core.streams_group.state import Endpoint, StreamsGroup
from kavka_broker.core.streams_group.statuses import StatusCode
from kavka_broker.core.streams_group.tasks import SinceEpochs, Tasks
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
SHOWN_MAX = 3  # internal topics that a status names
INDEXES_PER_COST = 20  # that are looked at
RIGHT_COST = 5  # of a slice
TOPICS_PER_STEP = 100


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
        response.active_tasks = yield from task_ids(change.assigned.active, cost)
        response.standby_tasks = yield from task_ids(change.assigned.standby, cost)
        response.warmup_tasks = yield from task_ids(change.assigned.warmup, cost)
    if change.tells_endpoints:
        assert change.group is not None, change
        response.partitions_by_user_endpoint = yield from endpoints_of(change.group, broker.metadata.topics, cost)
    details = {status.code: status.detail for status in change.statuses}
    if change.internal_topics:
        more = yield from create(change.internal_topics, broker, client, again_ms)
        details[StatusCode.MISSING_INTERNAL_TOPICS] += more
    response.status = [answers.Status(code, detail) for code, detail in details.items()]
    return response


def task_ids(tasks: Tasks | SinceEpochs, cost: Cost) -> Work[list[answers.TaskIds]]:
    found = list[answers.TaskIds]()
    for part, partitions in sorted(tasks.items()):
        found.append(answers.TaskIds(part, sorted(partitions)))
        if cost.add(1 + len(partitions)):
            yield
    return found


# --- endpoints ------------------------------------------------------------------------------------------------------


def endpoints_of(group: StreamsGroup, topics: Topics, cost: Cost) -> Work[list[answers.EndpointToPartitions]]:
    """The partitions that each endpoint of the group serves. Nothing changes the group: another one takes its place."""
    found = list[answers.EndpointToPartitions]()
    if not group.endpoints or group.configured is None:
        return found
    for member in group.members.values():
        if member.endpoint is not None:
            has, configured = member.assigned, group.configured
            active = yield from partitions_of(endpoint_partitions(has.active, configured, topics), cost)
            standby = yield from partitions_of(endpoint_partitions(has.standby, configured, topics), cost)
            endpoint = answers.Endpoint(member.endpoint.host, member.endpoint.port)
            found.append(answers.EndpointToPartitions(endpoint, active, standby))
        if cost.add(1):
            yield
    return found


def partitions_of(served: Iterator[tuple[str, list[int]]], cost: Cost) -> Work[list[answers.TopicPartition]]:
    found = list[answers.TopicPartition]()
    for topic, indexes in served:
        found.append(answers.TopicPartition(topic, indexes))
        if cost.add(1 + len(indexes) // INDEXES_PER_COST):
            yield
    return found


# --- internal topics ------------------------------------------------------------------------------------------------


def create(topics: Sequence[InternalTopic], broker: Broker, client: Client, again_ms: int) -> Work[str]:
    """Have internal topics created; returns what the status has to say of it."""
    cost, refused, failed = Cost(), list[str](), list[str]()
    if client.may_create is not None:
        for topic in topics:
            if not client.may_create(topic.name):
                refused.append(topic.name)
            if cost.add(RIGHT_COST):
                yield
    if refused:
        return f"; Unauthorized to CREATE on topics {shown(refused)}."
    for first in range(0, len(topics), TOPICS_PER_STEP):
        if first:
            yield
        some = topics[first : first + TOPICS_PER_STEP]
        broker.create_internal_topics(some, client, again_ms)
        now_ms = broker.clock.monotonic_ms()
        reasons = ((topic.name, broker.internal_topics.failure(topic.name, now_ms)) for topic in some)
        failed += [f"{name} ({reason})" for name, reason in reasons if reason is not None]
    return f"; Creation failed: {shown(failed)}." if failed else ""


def shown(texts: Sequence[str]) -> str:
    """The first of these, and how many more there are."""
    more = f" and {len(texts) - SHOWN_MAX} more" if len(texts) > SHOWN_MAX else ""
    return f"{', '.join(texts[:SHOWN_MAX])}{more}"
