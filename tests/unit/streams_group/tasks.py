"""Topologies and members for the tests of the assignor."""

from collections.abc import Iterable, Mapping

from kavka_broker.core.streams_group.assignor import TaskMember
from kavka_broker.core.streams_group.configured_topology import ConfiguredSubtopology, ConfiguredTopology
from kavka_broker.core.streams_group.tasks import TaskTarget
from kavka_broker.core.streams_group.topology import InternalTopic

CHANGELOG = {"log": InternalTopic("log", 1)}
Targets = Mapping[str, TaskTarget]
Task = tuple[str, int]


def configured(stateful: Mapping[str, int], stateless: Mapping[str, int] | None = None) -> ConfiguredTopology:
    """Return a topology with so many tasks in each subtopology."""
    parts = [ConfiguredSubtopology(name, count, state_changelog_topics=CHANGELOG) for name, count in stateful.items()]
    parts += [ConfiguredSubtopology(name, count) for name, count in (stateless or {}).items()]
    return ConfiguredTopology(1, {part.subtopology_id: part for part in parts})


def members(*names: str, last: Targets | None = None) -> list[TaskMember]:
    """Return members named by process and thread, as in `a1`: the first letter is the process."""
    return [TaskMember(name, name[0], (last or {}).get(name, TaskTarget())) for name in names]


def tasks_of(target: TaskTarget, role: str) -> list[Task]:
    return [(name, index) for name, indexes in getattr(target, role).items() for index in sorted(indexes)]


def active_members(targets: Targets) -> dict[Task, str]:
    """The member that runs each task; fails where two do."""
    found = dict[Task, str]()
    for member_id, target in targets.items():
        for task in tasks_of(target, "active"):
            assert task not in found, f"{task} is active with {member_id} and {found[task]}"
            found[task] = member_id
    return found


def standby_members(targets: Targets) -> dict[Task, list[str]]:
    found = dict[Task, list[str]]()
    for member_id, target in targets.items():
        for task in tasks_of(target, "standby"):
            found.setdefault(task, []).append(member_id)
    return found


def counts(targets: Targets, role: str = "active") -> dict[str, int]:
    return {member_id: len(tasks_of(target, role)) for member_id, target in sorted(targets.items())}


def moved(before: Targets, after: Targets) -> int:
    """How many active tasks have another member than before."""
    former = active_members(before)
    return sum(former.get(task, member) != member for task, member in active_members(after).items())


def as_last(given: Iterable[TaskMember], targets: Targets) -> list[TaskMember]:
    """The same members after they were assigned these targets."""
    return [TaskMember(one.member_id, one.process_id, targets.get(one.member_id, TaskTarget())) for one in given]
