"""Tasks of a streams application: a task runs one partition of a subtopology."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["NO_TASKS", "OwnedTasks", "SinceEpochs", "TaskTarget", "Tasks"]

Tasks = Mapping[str, frozenset[int]]
"""Partitions by the id of the subtopology; never an empty set."""
SinceEpochs = Mapping[str, Mapping[int, int]]
"""Active tasks, each with the assignment epoch in which the member got it; never an empty mapping."""


@dataclass(frozen=True, slots=True)
class TaskTarget:
    """Tasks of each role: active ones process records, standby ones keep a copy of the state, and warm-up ones restore
    it before they become active.
    """

    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(len(tasks) for role in (self.active, self.standby, self.warmup) for tasks in role.values())


@dataclass(frozen=True, slots=True)
class OwnedTasks:
    """Tasks that a member has."""

    active: SinceEpochs = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(len(tasks) for role in (self.active, self.standby, self.warmup) for tasks in role.values())

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    @property
    def tasks(self) -> TaskTarget:
        """The same without epochs."""
        active = {part: frozenset(tasks) for part, tasks in self.active.items()}
        return TaskTarget(active, self.standby, self.warmup)


NO_TASKS: Final = OwnedTasks()
