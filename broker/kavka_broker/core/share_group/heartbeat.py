"""What a heartbeat of a share group's member, or its end, comes to: records to append, an answer, and timers.

A heartbeat does up to five things, in this order: it brings the member in or up to date; moves the group epoch where
the subscription, a subscribed topic or the set of initialized partitions has changed; computes the target for that
epoch, of initialized partitions alone; takes the member to its target; and asks for the state of partitions that are
not initialized yet. Nothing here changes a group: the shell appends the records and replays them.

The epoch does not move again while its target waits for `assignment_interval_ms`.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import chain

from kavka_broker.core.consumer_group.assignors import Subscriber
from kavka_broker.core.consumer_group.heartbeat import AT_ONCE_STEPS_MAX, NO_ROOM, Surroundings, interval_ms, is_due
from kavka_broker.core.consumer_group.subscribed_topics import Topics, metadata_hash
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.share_group import state_partitions
from kavka_broker.core.share_group.assignor import Assignable, simple
from kavka_broker.core.share_group.checks import ShareHeartbeat, check_epoch, member_of
from kavka_broker.core.share_group.records import (
    assigned_record,
    group_record,
    member_record,
    member_tombstones,
    states_record,
    target_epoch_record,
    target_record,
)
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.core.share_group.state import (
    LEFT_EPOCH,
    MemberState,
    Named,
    ShareGroup,
    ShareMember,
    StatePartitions,
    Target,
    size_of,
)
from kavka_broker.core.share_group.state_partitions import Partitions
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["ShareChange", "fence", "heartbeat", "is_large", "is_steady", "leave"]

NO_PARTITIONS = frozenset[int]()


@dataclass(slots=True)
class ShareChange:
    """What a command on a share group comes to. `assigned` is None where the member need not hear of its assignment.

    A session is started again for `member_id`, unless it is among those that end. `initialize` are the partitions whose
    state the share coordinator is to make, with this `state_epoch`, once the records are committed.
    """

    records: list[KeyedRecord] = field(default_factory=list)
    member_id: str = ""
    epoch: int = 0
    assigned: Target | None = None
    interval_ms: int = 0  # to the member's next heartbeat
    ended: list[str] = field(default_factory=list)
    growth_bytes: int = 0  # what the member and the states take more
    has_computed: bool = False  # a target was computed
    topics_seen: int = -1  # the hash was compared with the topics as of this change of them
    is_settled: bool = False  # nothing is left to do at the topics that were seen
    initialize: Named = field(default_factory=dict)
    state_epoch: int = 0
    delete: Partitions = field(default_factory=dict)  # whose state the share coordinator is to delete


def is_large(group: ShareGroup, topics: Topics, more: Collection[str] = ()) -> bool:
    """Whether a change of the group, whose member names `more` topics, looks at more than `AT_ONCE_STEPS_MAX`."""
    states = group.states or StatePartitions()
    steps = len(group.members) + len(group.subscribed) + len(more) + len(states.initialized) + len(states.initializing)
    if steps > AT_ONCE_STEPS_MAX:
        return True
    steps += group.subscribed.total()
    steps += sum(len(topic.partitions) for topic in chain(states.initialized.values(), states.initializing.values()))
    if steps > AT_ONCE_STEPS_MAX:
        return True
    for topic in filter(None, map(topics.get, chain(more, group.subscribed))):
        steps += len(topic.partitions)
    # Several members may have a partition: each target is as long as the members are many, or the partitions.
    return steps + sum(len(target) for target in group.targets.values()) > AT_ONCE_STEPS_MAX


def is_steady(group: ShareGroup, beat: ShareHeartbeat, topics_seen: int) -> bool:
    """Whether a heartbeat says nothing new, and finds nothing to do: that takes no time, however large the group is."""
    member = group.members.get(beat.member_id)
    return (
        member is not None
        and group.is_settled
        and group.topics_seen == topics_seen
        and beat.epoch == member.epoch == group.assignment_epoch == group.epoch
        and beat.topics is None
        and _updated(member, beat) == member
    )


def heartbeat(
    group: ShareGroup, beat: ShareHeartbeat, settings: ShareGroupSettings, around: Surroundings
) -> ShareChange:
    """Decide on the heartbeat of a member that stays or joins. Raises BrokerError."""
    change = ShareChange()
    if len(group.members) >= settings.members_max and beat.member_id not in group.members:
        problem = f"The share group has reached its maximum capacity of {settings.members_max} members."
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, problem)
    before = _sender(group, beat)
    member, is_new = _updated(before, beat), before.member_id not in group.members
    if member != before or is_new:
        change.records.append(member_record(group.group_id, member))
    names = _names(group, before if not is_new else None, member)
    epoch, has_moved = _epoch(group, before, member, names, around, change)
    states = state_partitions.without_deleted(group.states, around.topics)
    if epoch > group.assignment_epoch and is_due(group.assigned_at_ms, settings.assignment_interval_ms, around.now_ms):
        target = _assign(group, member, epoch, around, change)
        assignment_epoch = epoch
    else:
        target, assignment_epoch = group.target_of(member.member_id), group.assignment_epoch
    after = _reconciled(member, assignment_epoch, target, around.topics, has_moved=has_moved)
    if after != member or is_new:
        change.records.append(assigned_record(group.group_id, after))
    topics = state_partitions.existing(around.topics, names)
    change.initialize = state_partitions.lacking(group, topics, around.now_ms, settings.initialize_retry_interval_ms)
    if change.initialize:
        states, change.state_epoch = state_partitions.begin(states, change.initialize), epoch
    if states is not None and states is not group.states:
        change.records.append(states_record(group.group_id, states))
    growth = member.size_bytes - (0 if is_new else before.size_bytes) + size_of(states) - size_of(group.states)
    if not around.has_room(growth):
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, NO_ROOM)
    change.growth_bytes = growth
    change.member_id, change.epoch = after.member_id, after.epoch
    is_waiting = epoch > assignment_epoch or not state_partitions.has_all(states, topics)
    is_waiting = is_waiting or (not change.has_computed and _has_unassigned(group, around.topics))
    change.interval_ms = interval_ms(settings, len(group.members), is_waiting=is_waiting)
    change.is_settled = not is_waiting
    if beat.is_full or after.assigned != before.assigned:
        change.assigned = after.assigned
    return change


def leave(group: ShareGroup, beat: ShareHeartbeat, topics: Topics) -> ShareChange:
    """Decide on the last heartbeat of a member. Raises BrokerError."""
    return fence(group, member_of(group, beat.member_id), topics)


def fence(group: ShareGroup, member: ShareMember, topics: Topics) -> ShareChange:
    """Decide on the end of a member; the others get its partitions as they heartbeat."""
    hashed = metadata_hash(_names(group, member, None), topics)
    return ShareChange(
        [
            *member_tombstones(group.group_id, member.member_id),
            group_record(group.group_id, group.epoch + 1, hashed),
        ],
        member.member_id,
        LEFT_EPOCH,
        ended=[member.member_id],
    )


# --- the steps ------------------------------------------------------------------------------------------------------


def _sender(group: ShareGroup, beat: ShareHeartbeat) -> ShareMember:
    """The member as the group knows it. Raises BrokerError."""
    if beat.joins:
        return group.members.get(beat.member_id) or ShareMember(beat.member_id)
    member = member_of(group, beat.member_id)
    check_epoch(member, beat.epoch)
    return member


def _updated(member: ShareMember, beat: ShareHeartbeat) -> ShareMember:
    """The member with what its heartbeat says."""
    return replace(
        member,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        topics=member.topics if beat.topics is None else frozenset(beat.topics),
    )


def _names(group: ShareGroup, before: ShareMember | None, after: ShareMember | None) -> set[str]:
    """The topics that members subscribe to, once a member is what it will be."""
    counts = group.subscribed.copy()
    if before is not None:
        counts.subtract(before.topics)
    if after is not None:
        counts.update(after.topics)
    return {name for name, count in counts.items() if count > 0}


def _epoch(
    group: ShareGroup,
    before: ShareMember,
    member: ShareMember,
    names: Collection[str],
    around: Surroundings,
    change: ShareChange,
) -> tuple[int, bool]:
    """The group epoch after this heartbeat, with its record where it is a new one, and whether it is."""
    has_moved = member.topics != before.topics
    if group.assignment_epoch >= group.epoch:
        has_moved = has_moved or _has_unassigned(group, around.topics)
    if not has_moved and group.topics_seen == around.topics_seen:
        return group.epoch, False
    hashed = metadata_hash(names, around.topics)
    change.topics_seen = around.topics_seen
    if not has_moved and hashed == group.metadata_hash:
        return group.epoch, False
    change.records.append(group_record(group.group_id, group.epoch + 1, hashed))
    return group.epoch + 1, True


def _has_unassigned(group: ShareGroup, topics: Topics) -> bool:
    """Whether the targets are of other partitions than those that are initialized, of a subscribed topic."""
    if not group.members or group.states is None or not group.states.initialized:
        return False
    targeted = dict[bytes, set[int]]()
    for target in group.targets.values():
        for topic_id, indexes in target.items():
            targeted.setdefault(topic_id, set()).update(indexes)
    return any(
        targeted.get(topic_id, NO_PARTITIONS) != indexes
        for topic_id, indexes in _assignable(group.states, group.subscribed, topics).items()
    )


def _assignable(states: StatePartitions | None, names: Collection[str], topics: Topics) -> Assignable:
    """The initialized partitions of these topics."""
    found = dict[bytes, frozenset[int]]()
    for topic_id, initialized in ({} if states is None else states.initialized).items():
        topic = topics.by_id(topic_id)
        if topic is not None and topic.name in names:
            found[topic_id] = initialized.partitions.intersection(topic.partitions)
    return found


def _assign(group: ShareGroup, member: ShareMember, epoch: int, around: Surroundings, change: ShareChange) -> Target:
    """Compute the target of this epoch, with a record for each member whose target changes; returns the member's.

    One that assigns nothing is as if it never was: the first partitions need not wait for the interval behind it.
    """
    members = {**group.members, member.member_id: member}
    names = frozenset[str]().union(*(known.topics for known in members.values()))
    partitions = _assignable(group.states, names, around.topics)
    ids = {topic.name: topic.topic_id for topic in filter(None, map(around.topics.by_id, partitions))}
    subscribers = [
        Subscriber(
            subscriber.member_id,
            frozenset(ids[name] for name in subscriber.topics if name in ids),
            group.target_of(subscriber.member_id),
        )
        for subscriber in members.values()
    ]
    targets = simple(subscribers, partitions)
    for subscriber in subscribers:
        if targets[subscriber.member_id] != subscriber.last or subscriber.member_id not in group.targets:
            change.records.append(target_record(group.group_id, subscriber.member_id, targets[subscriber.member_id]))
    assigned_at_ms = around.now_ms if any(partitions.values()) else 0
    change.records.append(target_epoch_record(group.group_id, epoch, assigned_at_ms))
    change.has_computed = True
    return targets[member.member_id]


def _reconciled(
    member: ShareMember, assignment_epoch: int, target: Target, topics: Topics, *, has_moved: bool
) -> ShareMember:
    """The member at its target, without topics that it does not subscribe to any more."""
    if member.epoch == assignment_epoch and member.state is MemberState.STABLE and not has_moved:
        return member
    assigned = {topic_id: indexes for topic_id, indexes in target.items() if _subscribes(member, topic_id, topics)}
    if member.epoch == assignment_epoch:
        return replace(member, state=MemberState.STABLE, assigned=assigned)
    return replace(
        member,
        epoch=assignment_epoch,
        previous_epoch=member.epoch,
        state=MemberState.STABLE,
        assigned=assigned,
    )


def _subscribes(member: ShareMember, topic_id: bytes, topics: Topics) -> bool:
    topic = topics.by_id(topic_id)
    return topic is not None and topic.name in member.topics
