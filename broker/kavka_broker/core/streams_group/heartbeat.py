"""What a heartbeat of a streams group's member, or its end, comes to: records to append, an answer, and timers.

A heartbeat does up to five things, in this order: it brings the member in or up to date; takes over the topology of the
first member; configures the topology where its topics have changed, which may name internal topics to create; computes
the target where the group epoch has moved; and takes the member one step towards its target. Nothing here changes a
group: the shell appends the records and replays them.

The first target of a group waits for `initial_rebalance_delay_ms`, so that more threads can join, and a later one for
`assignment_interval_ms`. A topology whose topics are missing, or do not fit, has no tasks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from kavka_broker.core.consumer_group.heartbeat import AT_ONCE_STEPS_MAX, NO_ROOM, Surroundings, interval_ms, is_due
from kavka_broker.core.consumer_group.subscribed_topics import Topics, metadata_hash
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.streams_group.assignor import TaskMember, sticky
from kavka_broker.core.streams_group.checks import StreamsHeartbeat, check_epoch, check_tasks, member_of, with_owned
from kavka_broker.core.streams_group.configured_topology import ConfiguredTopology, configure
from kavka_broker.core.streams_group.reconciliation import reconcile
from kavka_broker.core.streams_group.records import (
    assigned_record,
    group_record,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
    topology_record,
)
from kavka_broker.core.streams_group.settings import StreamsGroupSettings
from kavka_broker.core.streams_group.state import (
    LEFT_EPOCH,
    NOT_VALIDATED,
    TASK_BYTES,
    MemberState,
    StreamsGroup,
    StreamsMember,
    has_reached,
    size_of,
)
from kavka_broker.core.streams_group.statuses import Status, StatusCode
from kavka_broker.core.streams_group.tasks import OwnedTasks, TaskTarget
from kavka_broker.core.streams_group.topology import InternalTopic, Topology, topology_from
from kavka_broker.core.streams_group.topology_checks import check_topic_names, check_topology, named_topics
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages import streams_group_heartbeat_request as sent

__all__ = ["StreamsChange", "assign_delayed", "fence", "heartbeat", "is_large", "is_steady", "leave"]

NO_TASKS_YET = TaskTarget()


@dataclass(slots=True)
class StreamsChange:
    """What a command on a streams group comes to. `assigned` is None where the member need not hear of its tasks.

    A session is started again for `member_id`, unless it is among those that end. `revokes_ms`: how long the member
    may take to give tasks up, None where it has nothing to give up, -1 where the timer stays as it is. `delay_ms`: how
    long the first target of the group waits, None where that is not to be begun.
    """

    records: list[KeyedRecord] = field(default_factory=list)
    member_id: str = ""
    epoch: int = 0
    assigned: OwnedTasks | None = None
    statuses: list[Status] = field(default_factory=list)
    interval_ms: int = 0  # to the member's next heartbeat
    revokes_ms: int | None = -1
    delay_ms: int | None = None
    ended: list[str] = field(default_factory=list)
    has_moved: bool = False  # the group epoch has
    growth_bytes: int = 0  # what the member, the topology and the tasks take more
    has_computed: bool = False  # a target was computed
    topics_seen: int = -1  # the topology was configured with the topics as of this change of them
    configured: ConfiguredTopology | None = None  # None: as it was
    internal_topics: tuple[InternalTopic, ...] = ()  # that are to be created
    endpoint_epoch: int = 0
    tells_endpoints: bool = False  # the member has not seen this epoch of them
    shutdown_by: str | None = None
    group: StreamsGroup | None = None  # as the command has left it; the shell sets it


def is_large(group: StreamsGroup, topics: Topics, beat: StreamsHeartbeat | None = None) -> bool:
    """Whether a change of the group, by this heartbeat where there is one, looks at more than `AT_ONCE_STEPS_MAX`."""
    steps, topology = len(group.members), None if beat is None else beat.topology
    names: list[str] = []
    if group.topology is not None:
        steps += group.topology.texts
        names += group.topology.subtopology_of
    if beat is not None and beat.reported is not None:
        steps += _reported(beat.reported)
    if topology is not None:
        steps += len(topology.subtopologies)
        if steps > AT_ONCE_STEPS_MAX:
            return True
        for subtopology in topology.subtopologies:
            steps += _size_of(subtopology)
            if steps > AT_ONCE_STEPS_MAX:
                return True
            names += subtopology.source_topics
    if steps > AT_ONCE_STEPS_MAX:
        return True
    if group.configured is not None:
        steps += sum(configured.tasks for configured in group.configured.subtopologies.values())
    steps += sum(len(topic.partitions) for topic in filter(None, map(topics.get, names)))
    return steps > AT_ONCE_STEPS_MAX


def _reported(roles: Iterable[Sequence[sent.TaskIds]]) -> int:
    """How many tasks a member reports; no more are counted than make it large."""
    steps = 0
    for part in chain.from_iterable(roles):
        steps += 1 + len(part.partitions)
        if steps > AT_ONCE_STEPS_MAX:
            break
    return steps


def _size_of(part: sent.Subtopology) -> int:
    """How many texts and places a subtopology has, less than all of which may be enough to be large."""
    internal = len(part.state_changelog_topics) + len(part.repartition_source_topics)
    steps = internal + len(part.source_topics) + len(part.source_topic_regex) + len(part.repartition_sink_topics)
    steps += len(part.copartition_groups)
    if steps > AT_ONCE_STEPS_MAX:
        return steps
    steps += sum(2 * len(topic.topic_configs) for topic in part.state_changelog_topics)
    steps += sum(2 * len(topic.topic_configs) for topic in part.repartition_source_topics)
    return steps + sum(
        len(group.source_topics) + len(group.source_topic_regex) + len(group.repartition_source_topics)
        for group in part.copartition_groups
    )


def is_steady(group: StreamsGroup, beat: StreamsHeartbeat, settings: StreamsGroupSettings, topics_seen: int) -> bool:
    """Whether a heartbeat says nothing new, and finds nothing to do: that takes no time, however large the group is."""
    member = group.members.get(beat.member_id)
    return (
        member is not None
        and beat.epoch == member.epoch
        and beat.topology is None
        and beat.owned is None
        and beat.reported is None
        and group.configured is not None
        and group.topics_seen == topics_seen
        and group.epoch == group.assignment_epoch
        and group.assignment_configs == settings.assignment_configs
        and has_reached(member, group.assignment_epoch)
        and _updated(member, beat) == member
    )


def heartbeat(
    group: StreamsGroup,
    beat: StreamsHeartbeat,
    settings: StreamsGroupSettings,
    around: Surroundings,
    *,
    is_delayed: bool = False,
) -> StreamsChange:
    """Decide on the heartbeat of a member that stays or joins. Raises BrokerError. `is_delayed`: the first target of
    the group still waits.
    """
    change, beat = StreamsChange(shutdown_by=group.shutdown_by), with_owned(beat)
    is_empty = not group.members
    if beat.joins and len(group.members) >= settings.members_max:
        problem = f"The streams group has reached its maximum capacity of {settings.members_max} members."
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, problem)
    before, is_new = _sender(group, beat)
    topology = _topology(group, beat, change)
    member = _updated(before, beat)
    change.growth_bytes = _check_room(group, before if not is_new else None, member, topology, around)
    if member != before or is_new:
        change.records.append(member_record(group.group_id, member))
        change.has_moved = True
    if member.topology_epoch < topology.epoch:
        problem = f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch"
        change.statuses.append(Status(StatusCode.STALE_TOPOLOGY, f"{problem} {topology.epoch}."))
    configured = _configured(group, topology, around, change)
    change.internal_topics = configured.internal_topics
    if configured.is_ready:
        check_tasks(beat.owned, configured)
    group_after = _moved(group, topology, configured, settings, around, change)
    if is_empty and settings.initial_rebalance_delay_ms:
        change.delay_ms, is_delayed = settings.initial_rebalance_delay_ms, True
    view = View(group, member, configured)
    target, assignment_epoch = _target(view, group_after.epoch, settings, around, change, is_delayed=is_delayed)
    after = reconcile(group, member, assignment_epoch, target, beat.owned)
    if after is not member or is_new:
        change.records.append(assigned_record(group.group_id, after))
        is_revoking = after.state is MemberState.UNREVOKED_TASKS
        change.revokes_ms = max(after.rebalance_timeout_ms, 0) if is_revoking else None
    change.member_id, change.epoch = after.member_id, after.epoch
    is_waiting = group_after.epoch > assignment_epoch or not has_reached(after, assignment_epoch)
    is_waiting = is_waiting or bool(change.internal_topics)
    change.interval_ms = interval_ms(settings, len(group.members), is_waiting=is_waiting)
    if _needs_tasks(before, after, beat):
        change.assigned = after.assigned
    _tell_endpoints(group, before, after, beat, change)
    _tell_problems(beat, configured, change)
    return change


def assign_delayed(group: StreamsGroup, settings: StreamsGroupSettings, around: Surroundings) -> StreamsChange:
    """Decide on the first target of a group, whose delay has passed."""
    change = StreamsChange(shutdown_by=group.shutdown_by, endpoint_epoch=group.endpoint_epoch)
    if group.members and group.configured is not None and group.epoch > group.assignment_epoch:
        _target(View(group, None, group.configured), group.epoch, settings, around, change, is_delayed=False)
    return change


def leave(group: StreamsGroup, beat: StreamsHeartbeat) -> StreamsChange:
    """Decide on the last heartbeat of a member. Raises BrokerError."""
    change = fence(group, member_of(group, beat.member_id))
    if beat.shuts_down and change.shutdown_by is None:
        change.shutdown_by = beat.member_id
    return change


def fence(group: StreamsGroup, member: StreamsMember) -> StreamsChange:
    """Decide on the end of a member; the others get its tasks as they heartbeat."""
    moved = replace(group, epoch=group.epoch + 1)
    return StreamsChange(
        [*member_tombstones(group.group_id, member.member_id), group_record(moved)],
        member.member_id,
        LEFT_EPOCH,
        ended=[member.member_id],
        has_moved=True,
        endpoint_epoch=group.endpoint_epoch,
        shutdown_by=group.shutdown_by,
    )


# --- the steps ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """The group as it will be, with the member as it is now."""

    group: StreamsGroup
    member: StreamsMember | None
    configured: ConfiguredTopology

    def members(self) -> Iterable[StreamsMember]:
        if self.member is None:
            return self.group.members.values()
        return {**self.group.members, self.member.member_id: self.member}.values()

    def target_of_member(self, targets: Mapping[str, TaskTarget]) -> TaskTarget:
        return NO_TASKS_YET if self.member is None else targets.get(self.member.member_id, NO_TASKS_YET)


def _sender(group: StreamsGroup, beat: StreamsHeartbeat) -> tuple[StreamsMember, bool]:
    """The member as the group knows it, and whether it is new. Raises BrokerError."""
    if beat.joins:
        known = group.members.get(beat.member_id)
        return known or StreamsMember(beat.member_id), known is None
    member = member_of(group, beat.member_id)
    check_epoch(member, beat.epoch, beat.owned)
    return member, False


def _updated(member: StreamsMember, beat: StreamsHeartbeat) -> StreamsMember:
    """The member with what its heartbeat says."""
    return replace(
        member,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if beat.rebalance_timeout_ms == -1
        else beat.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch if beat.topology is None else beat.topology.epoch,
        process_id=member.process_id if beat.process_id is None else beat.process_id,
        endpoint=member.endpoint if beat.endpoint is None else beat.endpoint,
        client_tags=member.client_tags if beat.client_tags is None else beat.client_tags,
    )


def _topology(group: StreamsGroup, beat: StreamsHeartbeat, change: StreamsChange) -> Topology:
    """The group's topology after this heartbeat, with its record where the member brings it. Raises BrokerError."""
    known = group.topology
    if beat.topology is None:
        if known is None:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Group {group.group_id} has members and no topology.")
        return known
    topology = topology_from(beat.topology)
    check_topic_names(named_topics(topology))
    check_topology(topology)
    if known is None:
        change.records.append(topology_record(group.group_id, topology))
        return topology
    if topology.epoch >= known.epoch and topology != known:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


def _check_room(
    group: StreamsGroup,
    before: StreamsMember | None,
    member: StreamsMember,
    topology: Topology,
    around: Surroundings,
) -> int:
    """Return how many bytes more the member and the topology take. Raises BrokerError."""
    growth = member.size_bytes - (0 if before is None else before.size_bytes)
    growth += size_of(topology) - size_of(group.topology)
    if not around.has_room(growth):
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, NO_ROOM)
    return growth


def _configured(
    group: StreamsGroup, topology: Topology, around: Surroundings, change: StreamsChange
) -> ConfiguredTopology:
    """The topology as the topics are now. Raises BrokerError."""
    if group.configured is not None and group.topics_seen == around.topics_seen:
        return group.configured
    change.topics_seen = around.topics_seen
    change.configured = configure(topology, around.topics)
    return change.configured


def _moved(
    group: StreamsGroup,
    topology: Topology,
    configured: ConfiguredTopology,
    settings: StreamsGroupSettings,
    around: Surroundings,
    change: StreamsChange,
) -> StreamsGroup:
    """The group in its epoch after this heartbeat, with its record where that is a new one."""
    hashed = group.metadata_hash
    if change.configured is not None:
        hashed = metadata_hash(topology.required_topics, around.topics)
    moved = replace(
        group,
        metadata_hash=hashed,
        validated_epoch=topology.epoch if configured.is_ready else NOT_VALIDATED,
        assignment_configs=settings.assignment_configs,
    )
    change.has_moved = (
        change.has_moved
        or moved.metadata_hash != group.metadata_hash
        or moved.validated_epoch != group.validated_epoch
        or moved.assignment_configs != group.assignment_configs
    )
    if change.has_moved:
        moved.epoch += 1
        change.records.append(group_record(moved))
    return moved


def _target(
    view: View,
    epoch: int,
    settings: StreamsGroupSettings,
    around: Surroundings,
    change: StreamsChange,
    *,
    is_delayed: bool,
) -> tuple[TaskTarget, int]:
    """The target of the member, and its epoch; a new one is computed where it is due."""
    group = view.group
    if is_delayed:
        detail = "Assignment delayed due to the configured initial rebalance delay."
        change.statuses.append(Status(StatusCode.ASSIGNMENT_DELAYED, detail))
        return NO_TASKS_YET, group.assignment_epoch
    if group.assignment_epoch >= epoch:
        return view.target_of_member(group.targets), group.assignment_epoch
    if not is_due(group.assigned_at_ms, settings.assignment_interval_ms, around.now_ms):
        detail = "Assignment delayed due to the configured assignment interval."
        change.statuses.append(Status(StatusCode.ASSIGNMENT_DELAYED, detail))
        return view.target_of_member(group.targets), group.assignment_epoch
    targets = _assign(view, epoch, settings, around, change)
    if targets is None:
        detail = "Assignment delayed: its tasks would take more memory than the group coordinator may use."
        change.statuses.append(Status(StatusCode.ASSIGNMENT_DELAYED, detail))
        return view.target_of_member(group.targets), group.assignment_epoch
    return view.target_of_member(targets), epoch


def _assign(
    view: View, epoch: int, settings: StreamsGroupSettings, around: Surroundings, change: StreamsChange
) -> Mapping[str, TaskTarget] | None:
    """Compute the target of this epoch, with a record for each member whose target changes. None without the room for
    its tasks: a heartbeat is a sign of life all the same, and the former target stays.

    One that assigns nothing is as if it never was: the first tasks need not wait for the interval behind it.
    """
    group, members = view.group, list(view.members())
    targets: Mapping[str, TaskTarget] = {}
    if view.configured.is_ready:
        known = [
            TaskMember(member.member_id, member.process_id, last=group.target_of(member.member_id))
            for member in members
        ]
        targets = sticky(known, view.configured, settings.standby_replicas)
    growth = 2 * TASK_BYTES * (_count(targets.values()) - _count(group.targets.values()))  # in targets, and at members
    if not around.has_room(change.growth_bytes + max(growth, 0)) and growth > 0:
        return None
    change.growth_bytes += growth
    for member in members:
        target = targets.get(member.member_id, NO_TASKS_YET)
        if target != group.targets.get(member.member_id):
            change.records.append(target_record(group.group_id, member.member_id, target))
    change.records.append(target_epoch_record(group.group_id, epoch, around.now_ms if targets else 0))
    change.has_computed = True
    return targets


def _count(targets: Iterable[TaskTarget]) -> int:
    return sum(target.count for target in targets)


def _needs_tasks(before: StreamsMember, after: StreamsMember, beat: StreamsHeartbeat) -> bool:
    """Whether the member is to hear of its tasks: it joins, they have changed, or it has not heard of them before.

    Apache Kafka does not tell a member again whose answer was lost, which then runs nothing.
    """
    return (
        beat.joins
        or after.assigned != before.assigned
        or beat.epoch < before.epoch
        or (beat.owned is not None and beat.owned != after.assigned.tasks)
    )


def _tell_endpoints(
    group: StreamsGroup, before: StreamsMember, after: StreamsMember, beat: StreamsHeartbeat, change: StreamsChange
) -> None:
    """Move the epoch of endpoints where the tasks of one have moved, and say whether the member knows it."""
    has_moved = (beat.joins or after.assigned != before.assigned) and after.endpoint is not None
    change.endpoint_epoch = group.endpoint_epoch + (has_moved and not group.is_blank)
    change.tells_endpoints = change.endpoint_epoch != beat.endpoint_epoch


def _tell_problems(beat: StreamsHeartbeat, configured: ConfiguredTopology, change: StreamsChange) -> None:
    """Say what keeps the application from its work."""
    if configured.problem is not None:
        change.statuses.append(configured.problem)
    if beat.shuts_down and change.shutdown_by is None:
        change.shutdown_by = beat.member_id
    if change.shutdown_by is not None:
        detail = (
            f"Streams group member {change.shutdown_by} encountered a fatal error and requested a shutdown for the "
            "entire application."
        )
        change.statuses.append(Status(StatusCode.SHUTDOWN_APPLICATION, detail))
