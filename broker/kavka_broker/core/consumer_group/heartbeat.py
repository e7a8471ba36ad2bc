"""What a heartbeat of a member, or its end, comes to: records to append, an answer, and timers.

A heartbeat does up to four things, in this order: it brings the member in or up to date; moves the group epoch where
the subscription or a subscribed topic has changed; computes the target for that epoch; and takes the member one step
towards its target. Nothing here changes a group: the shell appends the records and replays them.

The target of a group that was assigned less than `assignment_interval_ms` ago waits for the heartbeats after that
(KIP-1263): a thousand members that join at once cost a few computations instead of a thousand.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final, Protocol

from kavka_broker.core.consumer_group.assignors import ASSIGNORS, Subscriber
from kavka_broker.core.consumer_group.checks import Heartbeat, check_epoch, member_of, require_instance
from kavka_broker.core.consumer_group.reconciliation import Goal, reconcile
from kavka_broker.core.consumer_group.records import (
    assigned_record,
    group_record,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
)
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import (
    LEFT_FOR_A_WHILE_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    Owned,
    Target,
)
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.protocol.errors import BrokerError, ErrorCode

FIRST_EPOCH: Final = 1
"""Of a new group, before its first member subscribes to anything: 0 would mean to the member that it is to join."""

__all__ = ["Change", "Described", "Topics", "fence", "heartbeat", "leave", "remove"]


class Described(Protocol):
    """A topic, as far as groups see it."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Mapping[int, object]: ...


class Topics(Protocol):
    """The topics that exist."""

    def get(self, name: str, /) -> Described | None: ...
    def by_id(self, topic_id: bytes, /) -> Described | None: ...


@dataclass(slots=True)
class Change:
    """What a command on a group comes to. `assigned` is None where the member need not hear of its assignment.

    A session is started again for `member_id`, unless it is among those that end. `revokes_ms`: how long the member
    may take to give partitions up, None where it has nothing to give up, -1 where the timer stays as it is.
    """

    records: list[KeyedRecord] = field(default_factory=list)
    member_id: str = ""
    epoch: int = 0
    assigned: Owned | None = None
    revokes_ms: int | None = -1
    ended: list[str] = field(default_factory=list)
    has_computed: bool = False  # a target was computed
    topics_seen: int = -1  # the hash was compared with the topics as of this change of them


def heartbeat(
    group: ConsumerGroup,
    beat: Heartbeat,
    settings: ConsumerGroupSettings,
    topics: Topics,
    topics_seen: int,
    now_ms: int,
) -> Change:
    """Decide on the heartbeat of a member that stays or joins. Raises BrokerError."""
    change = Change()
    before, replaced = _sender(group, beat)
    is_new = before.member_id not in group.members
    if is_new and replaced is None and len(group.members) >= settings.members_max:
        problem = f"The consumer group has reached its maximum capacity of {settings.members_max} members."
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, problem)
    if replaced is not None:
        change.records += _take_place(group, replaced, before)
        change.ended.append(replaced.member_id)
    member = _updated(before, beat)
    if member != before or is_new:
        change.records.append(member_record(group.group_id, member))
    view = View(group, member, replaced)
    epoch = _epoch(view, before, topics, topics_seen, change)
    if epoch > group.assignment_epoch and _is_due(group, settings.assignment_interval_ms, now_ms):
        target = _assign(view, epoch, settings, topics, now_ms, change)
        assignment_epoch = epoch
    else:
        target = group.target_of(replaced.member_id if replaced is not None else member.member_id)
        assignment_epoch = group.assignment_epoch
    goal = Goal(assignment_epoch, target, _subscribed(member, topics))
    after = reconcile(member, goal, view.owner, beat.owned)
    if after is not member or is_new:
        change.records.append(assigned_record(group.group_id, after))
        is_revoking = after.state is MemberState.UNREVOKED_PARTITIONS
        change.revokes_ms = after.rebalance_timeout_ms if is_revoking else None
    change.member_id, change.epoch = after.member_id, after.epoch
    if beat.is_full or after.assigned != before.assigned:
        change.assigned = after.assigned
    return change


def leave(group: ConsumerGroup, beat: Heartbeat, topics: Topics) -> Change:
    """Decide on the last heartbeat of a member. Raises BrokerError."""
    if beat.instance_id is None:
        member = member_of(group, beat.member_id)
    else:
        member = require_instance(group, beat.instance_id, beat.member_id)
    if beat.epoch == LEFT_FOR_A_WHILE_EPOCH:
        away = replace(member, epoch=LEFT_FOR_A_WHILE_EPOCH, revoking={})
        return Change(
            [assigned_record(group.group_id, away)], member.member_id, LEFT_FOR_A_WHILE_EPOCH, revokes_ms=None
        )
    return fence(group, member, topics, beat.epoch)


def remove(group: ConsumerGroup, instance_id: str, topics: Topics) -> Change:
    """Decide on the removal of a static member by an operator. Raises BrokerError."""
    member = group.static_member(instance_id)
    if member is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    return fence(group, member, topics)


def fence(group: ConsumerGroup, member: ConsumerMember, topics: Topics, epoch: int = -1) -> Change:
    """Decide on the end of a member: its partitions are free, and the others get them as they heartbeat."""
    rest = group.subscribed.copy()
    rest.subtract(member.topics)
    hashed = metadata_hash((name for name, count in rest.items() if count > 0), topics)
    return Change(
        [*member_tombstones(group.group_id, member.member_id), group_record(group.group_id, group.epoch + 1, hashed)],
        member.member_id,
        epoch,
        revokes_ms=None,
        ended=[member.member_id],
    )


def _is_due(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """Whether the next target may be computed. An assignment in the future is one of another broker's clock, or from
    before this one was set back: waiting for that time could take hours.
    """
    return not group.assigned_at_ms <= now_ms < group.assigned_at_ms + interval_ms


# --- the steps ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """The group as it will be: with the member as it is now, and without the one that it has replaced."""

    group: ConsumerGroup
    member: ConsumerMember
    replaced: ConsumerMember | None

    def members(self) -> list[ConsumerMember]:
        gone = self.replaced.member_id if self.replaced is not None else None
        members = {name: member for name, member in self.group.members.items() if name != gone}
        return list({**members, self.member.member_id: self.member}.values())

    def target_of(self, member_id: str) -> Target:
        if self.replaced is not None and member_id == self.member.member_id:
            return self.group.target_of(self.replaced.member_id)
        return self.group.target_of(member_id)

    def owner(self, topic_id: bytes, partition: int) -> str | None:
        owner = self.group.owner(topic_id, partition)
        is_own = self.replaced is not None and owner == self.replaced.member_id
        return self.member.member_id if is_own else owner


def _sender(group: ConsumerGroup, beat: Heartbeat) -> tuple[ConsumerMember, ConsumerMember | None]:
    """The member as the group knows it, and the static one whose place it takes. Raises BrokerError."""
    if beat.instance_id is None:
        if beat.joins:
            return group.members.get(beat.member_id) or ConsumerMember(beat.member_id), None
        member = member_of(group, beat.member_id)
        check_epoch(member, beat.epoch, beat.owned)
        return member, None
    if not beat.joins:
        member = require_instance(group, beat.instance_id, beat.member_id)
        check_epoch(member, beat.epoch, beat.owned)
        return member, None
    holder = group.static_member(beat.instance_id)
    if holder is None:
        return group.members.get(beat.member_id) or ConsumerMember(beat.member_id), None
    if not holder.is_away:
        problem = (
            f"Static member {beat.member_id} with instance id {beat.instance_id} cannot join the group because the "
            f"instance id is owned by {holder.member_id} member."
        )
        raise BrokerError(ErrorCode.UNRELEASED_INSTANCE_ID, problem)
    back = replace(holder, member_id=beat.member_id, epoch=0, previous_epoch=0)
    return back, None if holder.member_id == beat.member_id else holder


def _take_place(group: ConsumerGroup, replaced: ConsumerMember, member: ConsumerMember) -> list[KeyedRecord]:
    """The records by which a static member goes on under its new id, with the target of its predecessor."""
    return [
        *member_tombstones(group.group_id, replaced.member_id),
        member_record(group.group_id, member),
        target_record(group.group_id, member.member_id, group.target_of(replaced.member_id)),
        assigned_record(group.group_id, member),
    ]


def _updated(member: ConsumerMember, beat: Heartbeat) -> ConsumerMember:
    """The member with what its heartbeat says."""
    return replace(
        member,
        instance_id=member.instance_id if beat.instance_id is None else beat.instance_id,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        topics=member.topics if beat.topics is None else frozenset(beat.topics),
        regex=member.regex if beat.regex is None else beat.regex,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if beat.rebalance_timeout_ms == -1 else beat.rebalance_timeout_ms
        ),
        server_assignor=member.server_assignor if beat.server_assignor is None else beat.server_assignor,
    )


def _epoch(view: View, before: ConsumerMember, topics: Topics, topics_seen: int, change: Change) -> int:
    """The group epoch after this heartbeat, with its record where it is a new one."""
    group, member = view.group, view.member
    has_changed = member.topics != before.topics or member.regex != before.regex
    if not has_changed and group.topics_seen == topics_seen and group.epoch:
        return group.epoch
    names = group.subscribed.copy()
    if view.replaced is not None or member.member_id in group.members:
        names.subtract(before.topics)
    names.update(member.topics)
    hashed = metadata_hash((name for name, count in names.items() if count > 0), topics)
    change.topics_seen = topics_seen
    epoch = max(group.epoch, FIRST_EPOCH) + (has_changed or hashed != group.metadata_hash)
    if epoch > group.epoch:
        change.records.append(group_record(group.group_id, epoch, hashed))
    return epoch


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """A number that changes when one of the named topics comes, goes or gets more partitions. 0 where none exists."""
    found = [topic for topic in map(topics.get, sorted(names)) if topic is not None]
    if not found:
        return 0
    digest = blake2b(digest_size=8)
    for topic in found:
        digest.update(topic.topic_id + len(topic.partitions).to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)


def _assign(
    view: View, epoch: int, settings: ConsumerGroupSettings, topics: Topics, now_ms: int, change: Change
) -> Target:
    """Compute the target of this epoch, with a record for each member whose target changes; returns the member's."""
    group, members = view.group, view.members()
    if epoch == FIRST_EPOCH:  # nothing is subscribed to: what comes next need not wait for the interval
        change.records.append(target_epoch_record(group.group_id, epoch, 0))
        return {}
    names = sorted({name for member in members for name in member.topics})
    known = {topic.name: topic for topic in map(topics.get, names) if topic is not None}
    subscribers = [
        Subscriber(
            member.member_id,
            frozenset(known[name].topic_id for name in member.topics if name in known),
            view.target_of(member.member_id),
            member.instance_id,
        )
        for member in members
    ]
    counts = {topic.topic_id: len(topic.partitions) for topic in known.values()}
    targets = ASSIGNORS[preferred_assignor(members, settings.assignors)](subscribers, counts)
    for member in subscribers:
        if targets[member.member_id] != member.last or member.member_id not in group.targets:
            change.records.append(target_record(group.group_id, member.member_id, targets[member.member_id]))
    change.records.append(target_epoch_record(group.group_id, epoch, now_ms))
    change.has_computed = True
    return targets[view.member.member_id]


def preferred_assignor(members: Sequence[ConsumerMember], offered: Sequence[str]) -> str:
    """The assignor that most members ask for; of those that are even, the one that is offered first."""
    votes = [member.server_assignor for member in members if member.server_assignor is not None]
    return max(offered, key=votes.count)


def _subscribed(member: ConsumerMember, topics: Topics) -> Callable[[bytes], bool]:
    def is_subscribed(topic_id: bytes) -> bool:
        topic = topics.by_id(topic_id)
        return topic is not None and topic.name in member.topics

    return is_subscribed
