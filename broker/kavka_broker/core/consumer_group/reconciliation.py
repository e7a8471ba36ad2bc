"""How a member gets from what it has to its target, one heartbeat at a time.

    STABLE -----------------> UNREVOKED_PARTITIONS    the target takes something away
    STABLE -----------------> UNRELEASED_PARTITIONS   something of the target is still with another member
    UNREVOKED_PARTITIONS ---> UNREVOKED_PARTITIONS    the member reports, among what it owns, what it has to give up
    UNREVOKED_PARTITIONS ---> the newest target       the member has given everything up
    UNRELEASED_PARTITIONS --> the newest target       at each heartbeat: what is free by now is assigned

A member that has to give something up stays in its epoch until it has; then it enters the epoch of the newest target.
A partition is given out only while it has no owner, so that it never is with two members.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from kavka_broker.core.consumer_group.state import ConsumerMember, MemberState, Owned, Target, has_reached

__all__ = ["Goal", "reconcile"]

Reported = Mapping[bytes, Collection[int]] | None
"""What a member says that it owns; None where its heartbeat does not say."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member has to go: its target, of the topics that it subscribes to."""

    assignment_epoch: int
    target: Target
    subscribed: Callable[[bytes], bool]  # whether the member subscribes to the topic of this id
    has_changed: bool  # whether this heartbeat says so of other topics than before


def reconcile(
    member: ConsumerMember, goal: Goal, owner: Callable[[bytes, int], str | None], reported: Reported
) -> ConsumerMember:
    """The member after this heartbeat; the same object where nothing changes."""
    is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS and _owns(reported, member.revoking)
    if is_revoking or has_reached(member, goal.assignment_epoch):
        return _without_unsubscribed(member, goal, reported) if goal.has_changed else member
    after = _towards(member, goal, owner, reported)
    return member if after == member else after


def _owns(reported: Reported, revoking: Owned) -> bool:
    """Whether the member still owns any of what it has to give up: a member that does not say may."""
    if reported is None:
        return True
    return any(index in revoking.get(topic_id, ()) for topic_id, indexes in reported.items() for index in indexes)


def _without_unsubscribed(member: ConsumerMember, goal: Goal, reported: Reported) -> ConsumerMember:
    """Take topics away that the member subscribes to no longer, before any new target does."""
    gone = {topic_id: indexes for topic_id, indexes in member.assigned.items() if not goal.subscribed(topic_id)}
    if not gone:
        return member
    assigned = {topic_id: indexes for topic_id, indexes in member.assigned.items() if topic_id not in gone}
    revoking = {**member.revoking}
    for topic_id, indexes in gone.items():
        revoking[topic_id] = {**revoking.get(topic_id, {}), **indexes}
    if not _owns(reported, revoking):
        return replace(member, previous_epoch=member.epoch, assigned=assigned)
    return replace(
        member,
        previous_epoch=member.epoch,
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned=assigned,
        revoking=revoking,
    )


def _towards(
    member: ConsumerMember, goal: Goal, owner: Callable[[bytes, int], str | None], reported: Reported
) -> ConsumerMember:
    target = {topic_id: indexes for topic_id, indexes in goal.target.items() if goal.subscribed(topic_id)}
    kept, revoking = _parted(member.assigned, target)
    if revoking and _owns(reported, revoking):
        return replace(
            member,
            previous_epoch=member.epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            revoking=revoking,
        )
    is_waiting = False
    for topic_id, indexes in sorted(target.items()):
        lacking = indexes - kept.get(topic_id, {}).keys()
        # What the member itself has just given up is free for it again.
        free = [index for index in sorted(lacking) if owner(topic_id, index) in (None, member.member_id)]
        is_waiting = is_waiting or len(free) < len(lacking)
        if free:
            kept[topic_id] = {**kept.get(topic_id, {}), **dict.fromkeys(free, goal.assignment_epoch)}
    return replace(
        member,
        epoch=goal.assignment_epoch,
        previous_epoch=member.epoch,
        state=MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE,
        assigned=kept,
        revoking={},
    )


def _parted(assigned: Owned, target: Target) -> tuple[dict[bytes, Mapping[int, int]], dict[bytes, Mapping[int, int]]]:
    """What of the assignment stays, and what has to be given up."""
    kept, revoking = dict[bytes, Mapping[int, int]](), dict[bytes, Mapping[int, int]]()
    for topic_id, indexes in assigned.items():
        wanted = target.get(topic_id, frozenset())
        stays = {index: epoch for index, epoch in indexes.items() if index in wanted}
        goes = {index: epoch for index, epoch in indexes.items() if index not in wanted}
        if stays:
            kept[topic_id] = stays
        if goes:
            revoking[topic_id] = goes
    return kept, revoking
