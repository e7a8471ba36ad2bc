"""What a heartbeat of a member, or its end, comes to: records to append, an answer, and timers.

A heartbeat does up to four things, in this order: it brings the member in or up to date; moves the group epoch where
the subscription or a subscribed topic has changed; computes the target for that epoch; and takes the member one step
towards its target. Nothing here changes a group: the shell appends the records and replays them.

The target of a group that was assigned less than `assignment_interval_ms` ago waits for the heartbeats after that
(KIP-1263): a thousand members that join at once cost a few computations instead of a thousand. The first target of
members that come together waits for all of them (`gathering`).

What a command takes grows with members, topics and partitions, up to seconds. `is_large` and `is_steady` say which of
them the shell may do at once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from kavka_broker.core.consumer_group.assignors import ASSIGNORS, Subscriber
from kavka_broker.core.consumer_group.checks import Heartbeat, check_epoch, member_of, require_instance
from kavka_broker.core.consumer_group.classic_snapshot import ClassicSnapshot
from kavka_broker.core.consumer_group.downgrade import downgrade_records, downgraded, fits, may_downgrade
from kavka_broker.core.consumer_group.gathering import Gathering, gathers
from kavka_broker.core.consumer_group.reconciliation import Goal, reconcile
from kavka_broker.core.consumer_group.records import (
    assigned_record,
    expression_record,
    expression_tombstone,
    group_record,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
)
from kavka_broker.core.consumer_group.settings import (
    MEMBERS_BYTES_MAX,
    ConsumerGroupSettings,
    HeartbeatIntervals,
    has_room_for,
)
from kavka_broker.core.consumer_group.state import (
    LEFT_FOR_A_WHILE_EPOCH,
    NO_TARGET,
    NO_TOPICS,
    TEXT_BYTES,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    Owned,
    Target,
    has_reached,
)
from kavka_broker.core.consumer_group.subscribed_topics import Topics, metadata_hash
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.protocol.errors import BrokerError, ErrorCode

FIRST_EPOCH: Final = 1
"""Of a new group, before its first member subscribes to anything: 0 would mean to the member that it is to join."""

AT_ONCE_STEPS_MAX: Final = 200
"""Members, topics and partitions that one command may look at on the loop. Each takes some 20 us in all."""

STEP_PLACES_MAX: Final = 4_000
"""Members and owned partitions of a group whose member may go a step on the loop: all are copied, some 25 ns each."""

NO_ROOM: Final = f"The members of this and other groups take the {MEMBERS_BYTES_MAX} bytes that they may take."

MATCH_AGAIN_MS: Final = 10_000
"""Between two times that all expressions of a group are matched because topics have come or gone."""

__all__ = [
    "Change",
    "Surroundings",
    "fence",
    "heartbeat",
    "is_due",
    "is_large",
    "is_match_due",
    "is_steady",
    "is_step",
    "leave",
    "match",
]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a command finds outside of its group.

    `matched` has the topics of expressions that were matched just now. `room_bytes` is what members may grow by, and
    `batch_bytes_max` what the log takes at once.
    """

    topics: Topics
    topics_seen: int  # the number of changes of topics so far
    now_ms: int
    matched: Mapping[str, frozenset[str]] = field(default_factory=dict)
    room_bytes: int = MEMBERS_BYTES_MAX
    batch_bytes_max: int = MEMBERS_BYTES_MAX
    is_joint: bool = False  # others join a group without members at the same time

    def has_room(self, growth_bytes: int) -> bool:
        return has_room_for(growth_bytes, self.room_bytes)


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
    interval_ms: int = 0  # to the member's next heartbeat
    revokes_ms: int | None = -1
    ended: list[str] = field(default_factory=list)
    growth_bytes: int = 0  # what the member takes more
    has_computed: bool = False  # a target was computed
    topics_seen: int = -1  # the hash was compared with the topics as of this change of them
    has_matched_all: bool = False  # all expressions of the group were matched with the topics
    gathering: Gathering | None = None  # members still join, and the first target waits for them
    upgraded: ClassicSnapshot | None = None  # the classic group whose place the group takes
    classic: ClassicGroup | None = None  # that takes the group's place
    has_to_rebalance: bool = False  # the classic group


def is_large(group: ConsumerGroup, topics: Topics, more: Collection[str] = (), owned: int = 0) -> bool:
    """Whether a change of the group looks at more than `AT_ONCE_STEPS_MAX`. Its member then names `more` topics, and as
    many partitions as `owned`.
    """
    steps = len(group.members) + len(group.subscribed) + len(group.matched) + len(group.owners) + len(more) + owned
    if steps > AT_ONCE_STEPS_MAX:
        return True
    steps += group.subscribed.total() + sum(map(len, group.owners.values())) + sum(map(len, group.matched.values()))
    if steps > AT_ONCE_STEPS_MAX:
        return True
    for topic in filter(None, map(topics.get, chain(more, group.subscribed, *group.matched.values()))):
        steps += len(topic.partitions)
    return steps > AT_ONCE_STEPS_MAX


def is_steady(group: ConsumerGroup, beat: Heartbeat, topics_seen: int) -> bool:
    """Whether a heartbeat says nothing new, and finds nothing to do: that takes no time, however large the group is."""
    member = group.members.get(beat.member_id)
    return (
        member is not None
        and beat.epoch == member.epoch
        and beat.topics is None
        and beat.owned is None
        and group.topics_seen == topics_seen
        and group.epoch == group.assignment_epoch
        and has_reached(member, group.assignment_epoch)
        and _updated(member, beat) == member
    )


def is_step(group: ConsumerGroup, beat: Heartbeat, topics_seen: int) -> bool:
    """Whether a heartbeat says nothing new of its member, which at most goes one step towards its target. Except for a
    copy of the group, what that takes grows with the partitions of the member alone.
    """
    member = group.members.get(beat.member_id)
    if member is None or beat.topics is not None or group.topics_seen != topics_seen:
        return False
    places = len(group.members) + len(group.owners)
    is_small = places <= STEP_PLACES_MAX and places + sum(map(len, group.owners.values())) <= STEP_PLACES_MAX
    own = sum(
        map(len, (*member.assigned.values(), *member.revoking.values(), *group.target_of(member.member_id).values()))
    )
    is_small = is_small and own + beat.owned_count <= AT_ONCE_STEPS_MAX
    return is_small and group.epoch == group.assignment_epoch and _updated(member, beat) == member


def heartbeat(
    group: ConsumerGroup,
    beat: Heartbeat,
    settings: ConsumerGroupSettings,
    around: Surroundings,
    *,
    assigns: bool = True,
) -> Change:
    """Decide on the heartbeat of a member that stays or joins. Raises BrokerError. Without `assigns` no target is
    computed, and none of an epoch before is gone for: the group has no other heartbeat.
    """
    change = Change()
    before, replaced = _sender(group, beat)
    is_new = before.member_id not in group.members
    _check_room(group, settings, is_one_more=is_new and replaced is None)
    if replaced is not None:
        change.records += _take_place(group, replaced, before)
        change.ended.append(replaced.member_id)
    member = _updated(before, beat)
    is_known = replaced is not None or not is_new
    change.growth_bytes = _check_size(group, member, before if is_known else None, around)
    if member != before or is_new:
        change.records.append(member_record(group.group_id, member))
    view = View(group, member, replaced, around.matched)
    _match(view, before if is_known else None, around, change)
    epoch = _epoch(view, before, around, change)
    change.gathering = _gathering(group, settings, around, is_new=is_new) if assigns else None
    if assigns and epoch > group.assignment_epoch and may_assign(group, change.gathering, settings, around.now_ms):
        target = _assign(view, epoch, settings, around, change)
        assignment_epoch = epoch
    elif change.gathering is not None and not group.assignment_epoch:
        # A target of nothing, for the first members to be in its epoch: 0 would mean to them that they are to join.
        change.records.append(target_epoch_record(group.group_id, FIRST_EPOCH, 0))
        target, assignment_epoch = NO_TARGET, FIRST_EPOCH
    else:
        target = group.target_of(replaced.member_id if replaced is not None else member.member_id)
        assignment_epoch = group.assignment_epoch
    has_changed = (member.topics, member.regex) != (before.topics, before.regex)
    goal = Goal(assignment_epoch, target, _subscribed(view.topics_of(member), around.topics), has_changed=has_changed)
    has_goal = assigns or epoch == group.assignment_epoch
    after = reconcile(member, goal, view.owner, beat.owned) if has_goal else member
    if after is not member or is_new:
        change.records.append(assigned_record(group.group_id, after))
        # A member of the classic protocol is given its time when it is told to join again.
        is_revoking = after.state is MemberState.UNREVOKED_PARTITIONS and after.classic is None
        change.revokes_ms = max(after.rebalance_timeout_ms, 0) if is_revoking else None
    change.member_id, change.epoch = after.member_id, after.epoch
    is_waiting = epoch > assignment_epoch or not has_reached(after, assignment_epoch)
    change.interval_ms = interval_ms(settings, len(group.members), is_waiting=is_waiting)
    if beat.is_full or after.assigned != before.assigned:
        change.assigned = after.assigned
    return change


def interval_ms(settings: HeartbeatIntervals, members: int, *, is_waiting: bool) -> int:
    """How long a member waits before its next heartbeat. One that waits for its assignment asks sooner, so that a
    rebalance takes as long as its steps and not as its heartbeats; all of a group together ask a thousand times a
    second at most (docs/adr/0040).
    """
    if not is_waiting or not settings.rebalance_interval_ms:
        return settings.heartbeat_interval_ms
    return min(max(settings.rebalance_interval_ms, members), settings.heartbeat_interval_ms)


def is_match_due(group: ConsumerGroup, topics_seen: int, now_ms: int, refresh_interval_ms: int) -> bool:
    """Whether the group's expressions are to be matched: one never was, topics have changed, or rights may have."""
    if not group.expressed:
        return False
    if len(group.expressed) > len(group.matched):
        return True
    again_ms = refresh_interval_ms if group.matched_seen == topics_seen else MATCH_AGAIN_MS
    return not group.matched_at_ms <= now_ms < group.matched_at_ms + again_ms  # the clock may have been set back


def match(group: ConsumerGroup, around: Surroundings) -> Change:
    """Decide on what expressions of the group match by now. One that nobody has any more says nothing. Raises
    BrokerError.
    """
    moved = {
        regex: topics
        for regex, topics in around.matched.items()
        if regex in group.expressed and topics != group.matched.get(regex)
    }
    if not moved:
        return Change()
    growth = sum(len(topics) - len(group.matched.get(regex, ())) for regex, topics in moved.items())
    if not around.has_room(growth * TEXT_BYTES):
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, NO_ROOM)
    hashed = metadata_hash(_names(group.subscribed, group.expressed, {**group.matched, **moved}), around.topics)
    return Change(
        [
            *(expression_record(group.group_id, regex, topics, around.now_ms) for regex, topics in moved.items()),
            group_record(group.group_id, group.epoch + 1, hashed),
        ]
    )


def leave(group: ConsumerGroup, beat: Heartbeat, settings: ConsumerGroupSettings, around: Surroundings) -> Change:
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
    change = fence(group, [member], settings, around)
    change.member_id, change.epoch = member.member_id, beat.epoch
    return change


def fence(
    group: ConsumerGroup, members: Sequence[ConsumerMember], settings: ConsumerGroupSettings, around: Surroundings
) -> Change:
    """Decide on the end of members: their partitions are free, and the others get them as they heartbeat. Where all
    others speak the classic protocol, the group does too from then on, unless its record would be too large.
    """
    ended = [member.member_id for member in members]
    if may_downgrade(group, members, settings):
        classic = downgraded(group, frozenset(ended), around.topics, around.now_ms)
        records = downgrade_records(group, classic)
        if fits(records, around.batch_bytes_max):
            return Change(records, ended=ended, classic=classic, has_to_rebalance=True)
    rest, expressed = group.subscribed.copy(), group.expressed.copy()
    for member in members:
        rest.subtract(member.topics)
    expressed.subtract(member.regex for member in members if member.regex)
    regexes = dict.fromkeys(member.regex for member in members)
    unexpressed = [regex for regex in regexes if regex in group.matched and not expressed[regex]]
    hashed = metadata_hash(_names(rest, expressed, group.matched), around.topics)
    return Change(
        [
            *chain.from_iterable(member_tombstones(group.group_id, member_id) for member_id in ended),
            *(expression_tombstone(group.group_id, regex) for regex in unexpressed),
            group_record(group.group_id, group.epoch + 1, hashed),
        ],
        ended=ended,
    )


def is_due(assigned_at_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Whether the next target may be computed. An assignment in the future is one of another broker's clock, or from
    before this one was set back: waiting for that time could take hours.
    """
    return not assigned_at_ms <= now_ms < assigned_at_ms + interval_ms


def may_assign(group: ConsumerGroup, gathering: Gathering | None, settings: ConsumerGroupSettings, now_ms: int) -> bool:
    """Whether the target of a new epoch may be computed: no members are awaited, and the last one is old enough."""
    return gathering is None and is_due(group.assigned_at_ms, settings.assignment_interval_ms, now_ms)


def gathering_of(group: ConsumerGroup, settings: ConsumerGroupSettings, now_ms: int) -> Gathering | None:
    """Return whom the first target of the group waits for, None where that may be computed."""
    gathering = group.gathering
    return None if gathering is None or gathering.is_over(settings, now_ms) else gathering


def _gathering(
    group: ConsumerGroup, settings: ConsumerGroupSettings, around: Surroundings, *, is_new: bool
) -> Gathering | None:
    if around.is_joint and not group.members and gathers(settings):
        return Gathering(around.now_ms, around.now_ms)
    gathering = gathering_of(group, settings, around.now_ms)
    return gathering.joined(around.now_ms) if gathering is not None and is_new else gathering


# --- the steps ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """The group as it will be: with the member as it is now, and without the one that it has replaced."""

    group: ConsumerGroup
    member: ConsumerMember
    replaced: ConsumerMember | None
    matched: Mapping[str, frozenset[str]]

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        if member.regex in self.matched and member.regex not in self.group.matched:
            return member.topics | self.matched[member.regex]
        return self.group.topics_of(member)

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
    if holder is not None and beat.classic is not None and holder.member_id == beat.member_id:
        return holder, None
    if holder is not None and holder.member_id != beat.member_id and beat.member_id in group.members:
        problem = f"Member {beat.member_id} is in the group already, and not as instance id {beat.instance_id}."
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)
    if holder is None:
        return group.members.get(beat.member_id) or ConsumerMember(beat.member_id), None
    if not holder.is_away and holder.classic is None and beat.classic is None:
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
        classic=beat.classic,
    )


def _check_room(group: ConsumerGroup, settings: ConsumerGroupSettings, *, is_one_more: bool) -> None:
    """Raises BrokerError."""
    if is_one_more and len(group.members) >= settings.members_max:
        problem = f"The consumer group has reached its maximum capacity of {settings.members_max} members."
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, problem)


def _check_size(
    group: ConsumerGroup, member: ConsumerMember, before: ConsumerMember | None, around: Surroundings
) -> int:
    """Return how many bytes more the member takes. Raises BrokerError."""
    growth = member.size_bytes - (0 if before is None else before.size_bytes)
    if member.regex not in group.matched:
        growth += TEXT_BYTES * len(around.matched.get(member.regex, ()))
    if not around.has_room(growth):
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, NO_ROOM)
    return growth


def _match(view: View, before: ConsumerMember | None, around: Surroundings, change: Change) -> None:
    """Note what the member's expression matches where it is new, and forget one that nobody has any more."""
    group, regex = view.group, view.member.regex
    former = regex if before is None else before.regex
    if former != regex and former in group.matched and group.expressed[former] == 1:
        change.records.append(expression_tombstone(group.group_id, former))
    if regex in around.matched and regex not in group.matched:
        change.records.append(expression_record(group.group_id, regex, around.matched[regex], around.now_ms))
        change.has_matched_all = not group.expressed


def _epoch(view: View, before: ConsumerMember, around: Surroundings, change: Change) -> int:
    """The group epoch after this heartbeat, with its record where it is a new one."""
    group, member = view.group, view.member
    has_changed = member.topics != before.topics or (member.regex != before.regex and not _says_nothing(view, before))
    if not has_changed and group.topics_seen == around.topics_seen and group.epoch:
        return group.epoch
    names, expressed = group.subscribed.copy(), group.expressed.copy()
    if view.replaced is not None or member.member_id in group.members:
        names.subtract(before.topics)
        expressed.subtract([before.regex])
    names.update(member.topics)
    expressed.update([member.regex])
    hashed = metadata_hash(_names(names, expressed, {**view.matched, **group.matched}), around.topics)
    change.topics_seen = around.topics_seen
    epoch = max(group.epoch, FIRST_EPOCH) + (has_changed or hashed != group.metadata_hash)
    if epoch > group.epoch:
        change.records.append(group_record(group.group_id, epoch, hashed))
    return epoch


def _says_nothing(view: View, before: ConsumerMember) -> bool:
    """Whether a member's expression is new to the group and matches no topic, and the member keeps the topics that it
    had: its group stays in its epoch, as Apache Kafka's does, which matches a new expression only after the heartbeat.
    """
    member, group = view.member, view.group
    is_new = member.regex not in group.matched
    matches_none = member.regex in view.matched and not view.matched[member.regex]
    return is_new and matches_none and view.topics_of(member) == group.topics_of(before)


def _names(
    subscribed: Mapping[str, int], expressed: Mapping[str, int], matched: Mapping[str, frozenset[str]]
) -> set[str]:
    """The topics that members name, or that their expressions match."""
    names = {name for name, count in subscribed.items() if count > 0}
    return names.union(*(matched.get(regex, NO_TOPICS) for regex, count in expressed.items() if count > 0))


def _assign(view: View, epoch: int, settings: ConsumerGroupSettings, around: Surroundings, change: Change) -> Target:
    """Compute the target of this epoch, with a record for each member whose target changes; returns the member's."""
    group, members = view.group, view.members()
    named = {member.member_id: view.topics_of(member) for member in members}
    names = sorted(frozenset[str]().union(*named.values()))
    # In its first epoch a group may have members that subscribe to something only where it was upgraded.
    if epoch == FIRST_EPOCH and not names:  # what comes next need not wait for the interval
        change.records.append(target_epoch_record(group.group_id, epoch, 0))
        return {}
    known = {topic.name: topic for topic in map(around.topics.get, names) if topic is not None}
    subscribers = [
        Subscriber(
            member.member_id,
            frozenset(known[name].topic_id for name in named[member.member_id] if name in known),
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
    change.records.append(target_epoch_record(group.group_id, epoch, around.now_ms))
    change.has_computed = True
    return targets[view.member.member_id]


def preferred_assignor(members: Sequence[ConsumerMember], offered: Sequence[str]) -> str:
    """The assignor that most members ask for; of those that are even, the one that is offered first."""
    votes = [member.server_assignor for member in members if member.server_assignor is not None]
    return max(offered, key=votes.count)


def _subscribed(names: frozenset[str], topics: Topics) -> Callable[[bytes], bool]:
    def is_subscribed(topic_id: bytes) -> bool:
        topic = topics.by_id(topic_id)
        return topic is not None and topic.name in names

    return is_subscribed
