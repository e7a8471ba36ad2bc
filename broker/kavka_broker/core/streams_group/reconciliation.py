"""How a member gets from the tasks that it has to its target, one heartbeat at a time.

    STABLE ------------> UNREVOKED_TASKS    the target takes something away
    STABLE ------------> UNRELEASED_TASKS   something of the target is still with another member
    UNREVOKED_TASKS ---> UNREVOKED_TASKS    the member reports, among what it owns, what it has to give up
    UNREVOKED_TASKS ---> the newest target  the member has given everything up
    UNRELEASED_TASKS --> the newest target  at each heartbeat: what is free by now is assigned

An active task is free while no other member has it. No task is twice in one process, in whichever role: the threads of
a process share the directory of its state.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from kavka_broker.core.streams_group.state import MemberState, StreamsGroup, StreamsMember, has_reached
from kavka_broker.core.streams_group.tasks import NO_TASKS, OwnedTasks, SinceEpochs, Tasks, TaskTarget

__all__ = ["owns", "reconcile"]

IsFree = Callable[[str, int], bool]


def reconcile(
    group: StreamsGroup, member: StreamsMember, assignment_epoch: int, target: TaskTarget, reported: TaskTarget | None
) -> StreamsMember:
    """The member after this heartbeat; the same object where nothing changes. `reported` is what it says that it owns,
    None where it does not say.
    """
    if has_reached(member, assignment_epoch):
        return member
    epoch = member.epoch
    if member.state is MemberState.UNREVOKED_TASKS:
        if owns(reported, member.revoking):
            return member
        epoch = min(epoch + 1, assignment_epoch)
    after = _towards(group, member, epoch, assignment_epoch, target, reported)
    return member if after == member else after


def owns(reported: TaskTarget | None, revoking: OwnedTasks) -> bool:
    """Whether the member still owns any of what it has to give up: a member that does not say may."""
    if reported is None:
        return True
    pending = revoking.tasks
    roles = (
        (reported.active, pending.active),
        (reported.standby, pending.standby),
        (reported.warmup, pending.warmup),
    )
    return any(
        not partitions.isdisjoint(tasks.get(part, frozenset()))
        for owned, tasks in roles
        for part, partitions in owned.items()
    )


class Parted(NamedTuple):
    """What of a role stays, what has to be given up, and what of the target is free."""

    kept: Tasks
    revoking: Tasks
    free: Tasks
    is_waiting: bool  # for tasks that are not free


def _towards(
    group: StreamsGroup,
    member: StreamsMember,
    epoch: int,
    assignment_epoch: int,
    target: TaskTarget,
    reported: TaskTarget | None,
) -> StreamsMember:
    has, since = member.assigned.tasks, member.assigned.active
    active = _part(has.active, target.active, _free_to_run(group, member))
    standby = _part(has.standby, target.standby, _free_to_copy(group, member))
    warmup = _part(has.warmup, target.warmup, _free_to_copy(group, member))
    revoking = OwnedTasks(_since(active.revoking, since, epoch), standby.revoking, warmup.revoking)
    if revoking and owns(reported, revoking):
        kept = OwnedTasks(_since(active.kept, since, epoch), standby.kept, warmup.kept)
        return replace(
            member,
            epoch=epoch,
            previous_epoch=member.epoch,
            state=MemberState.UNREVOKED_TASKS,
            assigned=kept,
            revoking=revoking,
        )
    assigned = OwnedTasks(
        _since(_union(active.kept, active.free), since, assignment_epoch),
        _union(standby.kept, standby.free),
        _union(warmup.kept, warmup.free),
    )
    is_waiting = active.is_waiting or standby.is_waiting or warmup.is_waiting
    return replace(
        member,
        epoch=assignment_epoch,
        previous_epoch=member.epoch,
        state=MemberState.UNRELEASED_TASKS if is_waiting else MemberState.STABLE,
        assigned=assigned,
        revoking=NO_TASKS,
    )


def _part(has: Tasks, target: Tasks, is_free: IsFree) -> Parted:
    kept, revoking, free = dict[str, frozenset[int]](), dict[str, frozenset[int]](), dict[str, frozenset[int]]()
    is_waiting = False
    for part in sorted(has.keys() | target.keys()):
        owned, wanted = has.get(part, frozenset()), target.get(part, frozenset())
        lacking = wanted - owned
        available = frozenset(partition for partition in lacking if is_free(part, partition))
        is_waiting = is_waiting or len(available) < len(lacking)
        for tasks, partitions in ((kept, owned & wanted), (revoking, owned - wanted), (free, available)):
            if partitions:
                tasks[part] = partitions
    return Parted(kept, revoking, free, is_waiting)


def _free_to_run(group: StreamsGroup, member: StreamsMember) -> IsFree:
    """What the member itself has just given up is free for it again."""

    def is_free(part: str, partition: int) -> bool:
        owner = group.owners.active_owner(part, partition)
        return owner in (None, member.member_id) and not _is_copied(group, member, part, partition)

    return is_free


def _free_to_copy(group: StreamsGroup, member: StreamsMember) -> IsFree:
    def is_free(part: str, partition: int) -> bool:
        owner = group.owners.active_owner(part, partition)
        is_run = owner not in (None, member.member_id) and group.process_of(owner or "") == member.process_id
        return not is_run and not _is_copied(group, member, part, partition)

    return is_free


def _is_copied(group: StreamsGroup, member: StreamsMember, part: str, partition: int) -> bool:
    """Whether another member of the same process has the task as standby or warm-up."""
    return any(
        other != member.member_id and group.process_of(other) == member.process_id
        for other in group.owners.copies(part, partition)
    )


def _since(tasks: Tasks, known: SinceEpochs, epoch: int) -> dict[str, Mapping[int, int]]:
    """Active tasks with the epochs in which the member got them; `epoch` of those that are new."""
    return {
        part: {partition: known.get(part, {}).get(partition, epoch) for partition in sorted(partitions)}
        for part, partitions in tasks.items()
    }


def _union(tasks: Tasks, more: Tasks) -> Tasks:
    return {
        part: tasks.get(part, frozenset()) | more.get(part, frozenset()) for part in sorted(tasks.keys() | more.keys())
    }
