"""What a coordinator may do with members that come to a group together (docs/adr/0040).

The first heartbeats in a group without members are held for a moment, and where several come the first target waits for
all of them. What is held and awaited is known to the coordinator alone, so that it is looked at there after each step.
Times are those of the simulation; a node's clock may run a tenth too fast or too slow, and be set back now and then.

| anomaly | meaning |
|---|---|
| held-late | a heartbeat is held for longer than others may come |
| held-left | an arrival is remembered of which no heartbeat is held, or its count is wrong |
| gathered-apart | a member has partitions, or is to have them, while others are awaited |
| target-late | a member heartbeats, and the target is not computed that was due by then |
| epoch-zero | a member that has joined is in epoch 0, which would mean that it is to join |
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from kavka_broker.core.consumer_group.gathering import ARRIVAL_MS, INTERVALS_MAX
from kavka_broker.core.consumer_group.state import ConsumerGroup

#: Of what a node lives through between two steps, that counts for what it holds: it may have been stopped meanwhile.
STEP_SECONDS_MAX: Final = ARRIVAL_MS / 1000
HELD_SECONDS_MAX: Final = 10 * ARRIVAL_MS / 1000
#: By how much longer a coordinator may wait by its own clock, and by how much where clocks are set back.
DRIFT, SET_BACK = 1.2, 2.0
LATE_SECONDS: Final = 0.2


@dataclass(slots=True)
class Holds:
    """The heartbeats that one coordinator holds, and for how long each has been held."""

    looked_at: float = 0.0
    ages: dict[Any, float] = field(default_factory=dict)

    def look(self, arrivals: Any, now: float) -> Iterator[str]:
        """Yield what is wrong after a step of the node."""
        passed, self.looked_at = min(now - self.looked_at, STEP_SECONDS_MAX), now
        held = arrivals._held
        self.ages = {future: self.ages[future] + passed if future in self.ages else 0.0 for future in held}
        oldest = max(self.ages.values(), default=0.0)
        if oldest > HELD_SECONDS_MAX:
            yield f"held-late: a heartbeat is held for {oldest:.3f} s"
        counts = {group_id: arrival.held for group_id, arrival in arrivals._arrivals.items()}
        if not all(counts.values()) or sum(counts.values()) != len(held):
            yield f"held-left: {len(held)} heartbeats are held, and arrivals count {counts}"


@dataclass(slots=True)
class Awaited:
    """The target that one coordinator has yet to compute, by what is seen of the group."""

    epoch: int = -1  # of the group, for which it is; -1 where there is none, or there are no members
    since: float = 0.0
    members: frozenset[str] = frozenset()
    joined: float = 0.0  # when the last member did
    assignment_epoch: int = -1
    assigned: float = 0.0  # when the last target was computed, or its coordinator began
    gathers_since: int | None = None  # by the coordinator's clock: of which gathering this is
    gathered: float = 0.0  # when it began

    def look(self, group: ConsumerGroup | None, now: float) -> Iterator[str]:
        """Yield what is wrong once the group has changed."""
        if group is None:
            self.epoch, self.assignment_epoch, self.members, self.gathers_since = -1, -1, frozenset(), None
            return
        members = frozenset(group.members)
        if not self.members:
            self.epoch = -1  # without members it is due for none
        if members - self.members:
            self.joined = now
        if group.assignment_epoch != self.assignment_epoch:
            self.assigned, self.epoch = now, -1
        self.members, self.assignment_epoch = members, group.assignment_epoch
        gathers_since = None if group.gathering is None else group.gathering.since_ms
        if gathers_since != self.gathers_since:
            self.gathers_since, self.gathered = gathers_since, now
        if group.epoch <= group.assignment_epoch:
            self.epoch = -1
        elif self.epoch < 0:
            self.epoch, self.since = group.epoch, now
        if group.gathering is not None:
            has = [member.member_id for member in group.members.values() if member.assigned]
            if has or any(group.targets.values()):
                yield f"gathered-apart: {has} have partitions, of {list(group.members)} and others that are awaited"

    def due(self, group: ConsumerGroup, assignment_seconds: float, joining_seconds: float) -> float:
        """When it was to be computed at the latest, if all clocks are right."""
        due = max(self.since, self.assigned + assignment_seconds if group.assigned_at_ms else 0.0)
        if group.gathering is None:
            return due
        return max(due, min(self.joined + joining_seconds, self.gathered + INTERVALS_MAX * assignment_seconds))


class Gatherings:
    """All coordinators of one group. `objected` is told of each problem."""

    def __init__(
        self,
        assignment_ms: int,
        rebalance_ms: int,
        objected: Callable[[str], None],
        may_be_set_back: Callable[[], bool],
    ) -> None:
        self._assignment_seconds = assignment_ms / 1000
        self._joining_seconds = rebalance_ms / 2 / 1000
        self._objected = objected
        self._may_be_set_back = may_be_set_back
        self._holds: dict[Any, Holds] = {}  # by shard
        self._awaited: dict[Any, Awaited] = {}
        self.gathered = self.held = 0

    def look_at_held(self, shard: Any, now: float) -> None:
        """Look at what a coordinator holds, after each of its steps."""
        arrivals = shard.consumers._arrivals
        if shard not in self._holds:
            self._holds[shard] = Holds(now)
        holds = self._holds[shard]
        before = len(holds.ages)
        for problem in holds.look(arrivals, now):
            self._objected(problem)
        self.held += max(len(holds.ages) - before, 0)

    def look(self, shard: Any, group: ConsumerGroup | None, now: float) -> None:
        """Look at the group, after a step of its coordinator that has written anything."""
        if shard not in self._awaited:
            self._awaited[shard] = Awaited(assigned=now)
        awaited = self._awaited[shard]
        former = awaited.gathers_since
        for problem in awaited.look(group, now):
            self._objected(problem)
        self.gathered += awaited.gathers_since not in (None, former)

    def answered(self, shard: Any, group: ConsumerGroup, asked: float) -> None:
        """A member has heard from this coordinator, which has led since before it asked."""
        awaited = self._awaited.get(shard)
        if awaited is None or awaited.epoch < 0 or group.assignment_epoch >= awaited.epoch:
            return
        due = awaited.due(group, self._assignment_seconds, self._joining_seconds)
        waits = (due - awaited.since) * (SET_BACK if self._may_be_set_back() else DRIFT)
        if asked > awaited.since + waits + LATE_SECONDS:
            epochs = f"of epoch {awaited.epoch} at {due:.3f}, and the target is of {group.assignment_epoch}"
            self._objected(f"target-late: a member asked at {asked:.3f}, the target was due {epochs}")
