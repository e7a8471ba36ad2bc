"""Who gets which tasks: the assignor `sticky`.

An active task is with one member. A stateful task has as many standbys as are asked for, each in another process and
none in the process of its active task, as far as there are processes. Both kinds are spread evenly:

- The active tasks of a process are its members' share of all of them, rounded up or down; those of two members differ
  by at most one.
- Standbys go where they even out the number of all tasks of a member. A process has each task at most once, so that
  a large one may stay below its share.

What moves is as little as that allows. A task stays with its member, else in its process; else it goes where a standby
was, whose state is there. A standby comes to be where its active task was, else stays where it was.

Apache Kafka 4.3 moves standbys that could stay: where the first of the members with one cannot have it again, it looks
at no other (KAFKA-20899). It reads no rack and no client tag of a member, and neither does this.

Members and tasks are numbered in an order of their own: what is returned does not depend on the order of the members.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from kavka_broker.core.streams_group.active_tasks import place_active
from kavka_broker.core.streams_group.configured_topology import ConfiguredTopology
from kavka_broker.core.streams_group.processes import NO_MEMBER, Processes
from kavka_broker.core.streams_group.standbys import place_standbys
from kavka_broker.core.streams_group.tasks import Tasks, TaskTarget

__all__ = ["TaskMember", "assignment_steps", "sticky"]

Task = tuple[int, str]
"""Partition and subtopology."""


@dataclass(frozen=True, slots=True)
class TaskMember:
    """A member as the assignor sees it: its process, and its last target."""

    member_id: str
    process_id: str
    last: TaskTarget = field(default_factory=TaskTarget)


def assignment_steps(members: int, topology: ConfiguredTopology) -> int:
    """Return how many members and tasks an assignment looks at."""
    return members + sum(part.tasks for part in topology.subtopologies.values())


def sticky(members: Sequence[TaskMember], topology: ConfiguredTopology, standby_replicas: int) -> dict[str, TaskTarget]:
    """Assign all tasks; returns the target of each member."""
    ordered = sorted(members, key=lambda member: (member.process_id, member.member_id))
    if not ordered:
        return {}
    by_process = groupby(ordered, lambda member: member.process_id)
    processes = Processes.from_sizes([len(list(group)) for _, group in by_process])
    subtopologies = topology.subtopologies.items()
    tasks = sorted((index, name) for name, part in subtopologies for index in range(part.tasks))
    former, standbys = _last_members(ordered, tasks)
    dealt = sorted(range(len(tasks)), key=lambda task: (tasks[task][1], tasks[task][0]))
    active = place_active(processes, former, standbys, dealt)
    stateful = [task for task in dealt if topology.subtopologies[tasks[task][1]].is_stateful]
    hints = [[member, *others] for member, others in zip(former, standbys, strict=True)]
    copies = place_standbys(processes, active, stateful, hints, standby_replicas)
    by_role = _targets(tasks, [[member] for member in active], ordered), _targets(tasks, copies, ordered)
    return {member.member_id: TaskTarget(*(role[member.member_id] for role in by_role)) for member in ordered}


def _last_members(members: Sequence[TaskMember], tasks: Sequence[Task]) -> tuple[list[int], list[list[int]]]:
    """Return the member that had each task by the last target, and those that had its standbys."""
    numbers = {task: number for number, task in enumerate(tasks)}
    active, standbys = [NO_MEMBER] * len(tasks), [list[int]() for _ in tasks]
    for place, member in enumerate(members):
        for task in _numbered(member.last.active, numbers):
            if active[task] == NO_MEMBER:
                active[task] = place
        for task in _numbered(member.last.standby, numbers):
            standbys[task].append(place)
    return active, standbys


def _numbered(tasks: Tasks, numbers: Mapping[Task, int]) -> Iterator[int]:
    """Yield the numbers of the tasks that there are still."""
    for name, indexes in tasks.items():
        for index in indexes:
            number = numbers.get((index, name))
            if number is not None:
                yield number


def _targets(tasks: Sequence[Task], placed: Sequence[Iterable[int]], members: Sequence[TaskMember]) -> dict[str, Tasks]:
    """Return the tasks of one role by member."""
    targets: dict[str, dict[str, set[int]]] = {member.member_id: {} for member in members}
    for (index, name), places in zip(tasks, placed, strict=True):
        for place in places:
            targets[members[place].member_id].setdefault(name, set()).add(index)
    return {
        member_id: {name: frozenset(target[name]) for name in sorted(target)} for member_id, target in targets.items()
    }
