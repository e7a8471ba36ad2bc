"""StreamsGroupDescribe (89): streams groups (KIP-1071), their topologies, their members, and who has which tasks.

- A group that does not exist, or is of another protocol, is GROUP_ID_NOT_FOUND.
- Internal topics have their numbers of partitions as soon as all topics of the group exist.
- Answered when all that is told is committed.
- Without `streams` in group.coordinator.rebalance.protocols, or below streams.version 1, it is UNSUPPORTED_VERSION.
Versions: flexible from 0, the first one.
"""

from collections.abc import Iterable

from kavka_broker.coordinator.groups.streams_groups import is_served
from kavka_broker.core.streams_group.configured_topology import ConfiguredSubtopology
from kavka_broker.core.streams_group.state import StreamsGroup, StreamsMember
from kavka_broker.core.streams_group.tasks import OwnedTasks, SinceEpochs, Tasks, TaskTarget
from kavka_broker.core.streams_group.topology import InternalTopic, Subtopology
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import streams_group_describe_response as answers
from kavka_broker.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kavka_broker.protocol.messages.streams_group_describe_response import (
    DescribedGroup,
    StreamsGroupDescribeResponse,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.describe_answers import describe_all
from kavka_broker.request.registry import api, listing
from kavka_broker.request.split_requests import Each

MEMBER_COST = 3  # of a slice
NAMES_PER_COST = 4  # that are sorted


@api(
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    versions=(0, 0),
    each=(Each("group_ids", "groups", per_turn=1, once=True),),
)
@listing
async def streams_group_describe(
    request: StreamsGroupDescribeRequest, broker: Broker, client: Client
) -> StreamsGroupDescribeResponse:
    groups = await describe_all(
        request,
        DescribedGroup,
        lambda shard: shard.streams,
        description_of,
        broker,
        client,
        is_served=is_served(broker.config, broker.metadata),
    )
    return StreamsGroupDescribeResponse(groups=groups)


def description_of(group: StreamsGroup) -> Work[DescribedGroup]:
    """Describe a group as it is now: nothing changes it, another one takes its place."""
    answer, cost = DescribedGroup(ErrorCode.NONE, None, group.group_id, group.state.value), Cost()
    answer.group_epoch, answer.assignment_epoch = group.epoch, group.assignment_epoch
    answer.topology = yield from topology_of(group, cost)
    for member in list(group.members.values()):
        target = group.targets.get(member.member_id, TaskTarget())
        answer.members.append((yield from member_of(member, target, cost)))
        if cost.add(MEMBER_COST):
            yield
    return answer


def topology_of(group: StreamsGroup, cost: Cost) -> Work[answers.Topology | None]:
    """Describe the topology, with the numbers of partitions where all topics exist."""
    if group.topology is None:
        return None
    configured = group.configured
    ready = configured.subtopologies if configured is not None and configured.is_ready else {}
    parts = []
    for part in group.topology.subtopologies:
        described = yield from subtopology_of(part, ready.get(part.subtopology_id), cost)
        parts.append(described)
    return answers.Topology(group.topology.epoch, parts)


def subtopology_of(part: Subtopology, ready: ConfiguredSubtopology | None, cost: Cost) -> Work[answers.Subtopology]:
    sources: Iterable[InternalTopic] = part.repartition_source_topics
    changelogs: Iterable[InternalTopic] = part.state_changelog_topics
    if ready is not None:
        sources, changelogs = ready.repartition_source_topics.values(), ready.state_changelog_topics.values()
    if cost.add(1 + (len(part.source_topics) + len(part.repartition_sink_topics)) // NAMES_PER_COST):
        yield
    return answers.Subtopology(
        part.subtopology_id,
        sorted(part.source_topics),
        sorted(part.repartition_sink_topics),
        (yield from infos_of(changelogs, cost)),
        (yield from infos_of(sources, cost)),
    )


def infos_of(topics: Iterable[InternalTopic], cost: Cost) -> Work[list[answers.TopicInfo]]:
    found = []
    for topic in sorted(topics, key=lambda topic: topic.name):
        configs = [answers.KeyValue(key, value) for key, value in topic.configs]
        found.append(answers.TopicInfo(topic.name, topic.partitions, topic.replication_factor, configs))
        if cost.add(1 + len(configs)):
            yield
    return found


def member_of(member: StreamsMember, target: TaskTarget, cost: Cost) -> Work[answers.Member]:
    endpoint = member.endpoint
    assignment = yield from assignment_of(member.assigned, cost)
    target_assignment = yield from assignment_of(target, cost)
    return answers.Member(
        member.member_id,
        member.epoch,
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.topology_epoch,
        member.process_id,
        None if endpoint is None else answers.Endpoint(endpoint.host, endpoint.port),
        [answers.KeyValue(key, value) for key, value in member.client_tags],
        assignment=assignment,
        target_assignment=target_assignment,
    )


def assignment_of(tasks: TaskTarget | OwnedTasks, cost: Cost) -> Work[answers.Assignment]:
    found = answers.Assignment()
    roles: tuple[Tasks | SinceEpochs, ...] = (tasks.active, tasks.standby, tasks.warmup)
    for role, ids in zip(roles, (found.active_tasks, found.standby_tasks, found.warmup_tasks), strict=True):
        for part, partitions in sorted(role.items()):
            ids.append(answers.TaskIds(part, sorted(partitions)))
            if cost.add(1 + len(partitions)):
                yield
    return found
