"""What members of a streams group (KIP-1071) may have: a task is never active with two of them at once.

Members have active tasks as those of `holdings` have partitions: from the answer that assigns them until they give
them up, are fenced, or have been silent for their session. A task is a place there: the id of its subtopology, in
bytes, and its partition. Standbys are had likewise, and the threads of a process share one directory of state.

| anomaly | meaning |
|---|---|
| two-members | a task is active with two members at once (T4), as they see it |
| standby-beside | a task is twice in one process, active and as a standby, or as two standbys |
| two-owners | the coordinator has a task active at two members, or has two of them as its target |
| target-beside | a target has a task twice in one process |
| target-lacks | a target of the group's epoch lacks an active task, or a standby that there is a process for |
| stale-commit, refused-commit, lost-commit | as in `holdings`: an offset of a topic that a task reads (KIP-1251) |
| stale-commit | or one of a member that was gone was taken, and the task was with another since |
| zombie-served | a coordinator serves a member of which it has said before that it is none |
| stuck-revocation | a member keeps what it has to give up for longer than its rebalance timeout, and is not fenced |
| epoch-back, epoch-ahead, epoch-lost | as in `holdings` |
| unbalanced | at the end a task has no member, or members have more than their share |
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.streams_group.configured_topology import ConfiguredTopology
from kavka_broker.core.streams_group.state import StreamsGroup
from kavka_broker.core.streams_group.tasks import Tasks
from tests.sim.commits import Attempt
from tests.sim.holdings import Held, Holdings, Seen

REPLICAS: Final = "num.standby.replicas"


def task_text(task: Held) -> str:
    return f"{task[0].decode()}_{task[1]}"


def tasks_in(tasks: Tasks) -> list[Held]:
    """Return tasks as places."""
    return [(part.encode(), index) for part, indexes in sorted(tasks.items()) for index in sorted(indexes)]


@dataclass(frozen=True, slots=True)
class Copies:
    """The standbys of one member, which count as long as its active tasks do."""

    process: str
    tasks: frozenset[Held]


class TaskHoldings(Holdings):
    """One group as its members see it, all together."""

    def __init__(self, *, may_expire: bool = False) -> None:
        super().__init__(may_expire=may_expire)
        self._copies: dict[str, Copies] = {}
        self._copied: dict[str, set[Held]] = {}  # standbys that a process has ever had
        self.member_ids: dict[str, str] = {}  # of each thread, at present
        self._takers: dict[Held, tuple[float, str]] = {}  # when a member got a task last, and its id
        self.standbys = self.promoted = self.haunted = 0
        self.statuses = Counter[str]()  # that members were told

    def runs(
        self,
        who: str,
        process: str,
        active: Iterable[Held],
        copies: Iterable[Held],
        now: float,
        until: float | None,
    ) -> None:
        """A member has these tasks, until then if it hears no more; None where the answer does not count."""
        claimed, before = self._claims.get(who), self._copies.get(who)
        had_active = frozenset[Held]() if claimed is None else claimed.counted
        self.has(who, active, now, until)
        if until is None:
            return
        got = self._claims[who].counted - had_active
        self._takers |= dict.fromkeys(sorted(got), (now, self.member_ids.get(who, who)))
        mine = Copies(process, frozenset(copies))
        self._copies[who] = mine
        copied = self._copied.setdefault(process, set())
        self.standbys += len(mine.tasks - (frozenset() if before is None else before.tasks))
        self.promoted += len(got & copied)
        copied |= mine.tasks
        for other, theirs in self._copies.items():
            if theirs.process != process or not (self._claims[other].counts(now) and self._claims[who].counts(now)):
                continue
            running = self._running(other, now)
            twice = [(mine.tasks, running), (self._running(who, now), theirs.tasks)]
            twice += [] if other == who else [(mine.tasks, theirs.tasks)]
            for first, second in twice:
                if first & second:
                    task = task_text(min(first & second))
                    self.object(f"standby-beside: {task} is twice in {process}, at {who} and {other}")

    def _running(self, who: str, now: float) -> frozenset[Held]:
        claim = self._claims.get(who)
        return claim.counted if claim is not None and claim.counts(now) else frozenset()

    def drops(self, who: str, active: Iterable[Held], copies: Iterable[Held]) -> None:
        """A member has nothing to do with these tasks any more; it may have some of them still."""
        self.gives_up(who, active)
        before = self._copies.get(who)
        if before is not None:
            self._copies[who] = Copies(before.process, before.tasks.difference(copies))

    def forgets(self, who: str) -> None:
        super().forgets(who)
        self._copies.pop(who, None)

    def committed_by_zombie(self, task: Held, attempt: Attempt, ended: float, now: float) -> None:
        """A commit of a member that was gone since `ended` was acknowledged. One that has joined again under its id has
        what it had.
        """
        attempt.ended = now
        taken, taker = self._takers.get(task, (0.0, ""))
        if ended < taken < attempt.began and taker != attempt.member_id:
            what = f"{attempt.member_id} committed {task_text(task)} in {attempt.generation}, {taker} has it"
            self.object(f"stale-commit: {what}")

    # --- the coordinator ----------------------------------------------------------------------------------------

    def look_at(self, group: StreamsGroup | None, seen: Seen, *, is_first: bool) -> None:
        """Look at the group after a step of its coordinator; `is_first`: it has just read the log."""
        if self.forgettings() > self._forgettings:
            self._told_epoch = 0  # the group may have been forgotten without members, and begin again
        if is_first and (0 if group is None else group.epoch) < self._told_epoch:
            what = "no group" if group is None else f"epoch {group.epoch}"
            self.object(f"epoch-lost: a member was in {self._told_epoch}, and the log has {what}")
        if group is None:
            seen.epoch = seen.assignment_epoch = -1
            return
        if group.epoch < seen.epoch or group.assignment_epoch < seen.assignment_epoch:
            now, before = (group.epoch, group.assignment_epoch), (seen.epoch, seen.assignment_epoch)
            self.object(f"epoch-back: the group is in {now}, and was in {before}")
        seen.epoch, seen.assignment_epoch = group.epoch, group.assignment_epoch
        for problem in amiss_in(group):
            self.object(problem)


def amiss_in(group: StreamsGroup) -> Iterator[str]:
    """What a coordinator may never have in mind."""
    owners: dict[Held, str] = {}
    for member in group.members.values():
        for owned in (member.assigned.tasks, member.revoking.tasks):
            for task in tasks_in(owned.active):
                owner = owners.setdefault(task, member.member_id)
                if owner != member.member_id:
                    yield f"two-owners: {task_text(task)} is active at {owner} and {member.member_id}"
        if member.epoch > group.assignment_epoch:
            epochs = f"{member.epoch}, and the target is of {group.assignment_epoch}"
            yield f"epoch-ahead: {member.member_id} is in {epochs}"
    if group.assignment_epoch > group.epoch:
        yield f"epoch-ahead: the target is of {group.assignment_epoch}, and the group in {group.epoch}"
    yield from _amiss_in_targets(group)


def _amiss_in_targets(group: StreamsGroup) -> Iterator[str]:
    active, copies, beside = Counter[Held](), Counter[Held](), Counter[tuple[str | None, Held]]()
    for member_id, target in group.targets.items():
        process = group.process_of(member_id)
        active.update(tasks_in(target.active))
        copies.update(tasks_in(target.standby))
        beside.update((process, task) for task in (*tasks_in(target.active), *tasks_in(target.standby)))
    for task, count in active.items():
        if count > 1:
            yield f"two-owners: {task_text(task)} is to be active {count} times"
    for (process, task), count in beside.items():
        if count > 1 and process is not None:
            yield f"target-beside: {task_text(task)} is to be {count} times in {process}"
    is_whole = group.epoch == group.assignment_epoch and group.validated_epoch >= 0
    if is_whole and group.members and group.configured is not None and group.configured.is_ready:
        yield from _lacking(group, group.configured, active, copies)


def _lacking(
    group: StreamsGroup, configured: ConfiguredTopology, active: Counter[Held], copies: Counter[Held]
) -> Iterator[str]:
    """What a target does not have that was computed for the group as it is."""
    processes = len({member.process_id for member in group.members.values()})
    replicas = min(int(dict(group.assignment_configs)[REPLICAS]), processes - 1)
    for part in configured.subtopologies.values():
        for task in ((part.subtopology_id.encode(), index) for index in range(part.tasks)):
            if not active[task]:
                yield f"target-lacks: {task_text(task)} is to be active nowhere"
            if part.is_stateful and copies[task] < replicas:
                yield f"target-lacks: {task_text(task)} is to have {copies[task]} standbys of {replicas}"


# --- the end ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Standing:
    """What one member has when all is quiet."""

    who: str
    process: str
    epoch: int
    active: frozenset[Held]
    copies: frozenset[Held]


def unassigned(members: list[Standing], tasks: dict[Held, bool], replicas: int) -> Iterator[str]:
    """Tasks that are not active with one member, or have another number of standbys than they should. `tasks` says of
    each whether it is stateful.
    """
    running = {task: [member.who for member in members if task in member.active] for task in tasks}
    wanted = min(replicas, len({member.process for member in members}) - 1)
    for task, is_stateful in tasks.items():
        if len(running[task]) != 1:
            yield f"{task_text(task)} is active with {', '.join(running[task]) or 'no member'}"
        count = sum(task in member.copies for member in members)
        if count != (wanted if is_stateful else 0):
            yield f"{task_text(task)} has {count} standbys, and {wanted} are wanted"
    for member in members:
        for task in sorted(member.active | member.copies):
            if task not in tasks:
                yield f"{member.who} has {task_text(task)}, which there is not"


def unbalanced(members: list[Standing]) -> Iterator[str]:
    """Where active tasks are spread more widely than the assignor says."""
    counts = sorted(len(member.active) for member in members)
    if counts and counts[-1] - counts[0] > 1:
        yield f"members have {counts} active tasks"
