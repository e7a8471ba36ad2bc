"""What must hold after each step of a node, by the names of the TLA+ specifications of Kafka's replication.

Each invariant is an object with a name, a reason and a check of one replica that has just changed. The broker's state
is read from outside: attributes and the bytes of the logs, never through what the broker itself believes to be true.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.sim.history import Place, place_text
from tests.sim.observed import Committed, Truth, View, Written


@dataclass(slots=True)
class Seen:
    """One replica after a step, and how it was before."""

    node_id: int
    life: int
    place: Place
    high_watermark: int
    end_offset: int
    is_leader: bool
    epoch: int
    view: View
    truth: Truth
    added: list[Written]
    before: "Seen | None" = None

    def __str__(self) -> str:
        role = "leads" if self.is_leader else "follows"
        return (
            f"node{self.node_id} {role} {place_text(self.place)} in epoch {self.epoch},"
            f" high watermark {self.high_watermark}, end {self.end_offset}"
        )


@dataclass(frozen=True, slots=True)
class Invariant:
    """`check` yields what is wrong."""

    name: str
    check: Callable[["Invariants", Seen], Iterator[str]]
    why: str


INVARIANTS: list[Invariant] = []


def invariant(name: str) -> Callable[[Callable[["Invariants", Seen], Iterator[str]]], Any]:
    """Register a check under its name; its docstring is the reason."""

    def register(check: Callable[["Invariants", Seen], Iterator[str]]) -> Any:
        INVARIANTS.append(Invariant(name, check, check.__doc__ or ""))
        return check

    return register


@invariant("LogMatching")
def log_matching(_: "Invariants", seen: Seen) -> Iterator[str]:
    """One epoch and one offset make one batch, in whichever log; offsets follow each other, epochs never fall."""
    if not seen.added:
        return
    previous = seen.view.batches[-len(seen.added) - 1] if len(seen.view.batches) > len(seen.added) else None
    for batch in seen.added:
        known = seen.truth.written.setdefault((batch.epoch, batch.base_offset), batch)
        if known != batch:
            yield f"{batch} here, {known} elsewhere"
        if previous is not None and (batch.base_offset != previous.end_offset or batch.epoch < previous.epoch):
            yield f"{batch} follows {previous}"
        seen.truth.holders.setdefault(batch, {})[seen.node_id] = None
        previous = batch


@invariant("OneLeaderPerEpoch")
def one_leader_per_epoch(_: "Invariants", seen: Seen) -> Iterator[str]:
    """Two leaders in one epoch would both write at the same offsets."""
    if seen.is_leader:
        leader = seen.truth.leaders.setdefault(seen.epoch, seen.node_id)
        if leader != seen.node_id:
            yield f"node{leader} led in this epoch"


@invariant("LeaderCompleteness")
def leader_completeness(_: "Invariants", seen: Seen) -> Iterator[str]:
    """A leader has everything that was committed before its epoch."""
    before = seen.before
    is_new = before is None or not before.is_leader or before.epoch != seen.epoch or before.life != seen.life
    if seen.is_leader and is_new:
        for batch, epoch in seen.truth.committed:
            if epoch < seen.epoch and seen.view.at(batch) != batch:
                yield f"lacks {batch}, committed in epoch {epoch}; has {seen.view.at(batch)} there"
                return


@invariant("HighWatermarkMonotone")
def high_watermark_monotone(_: "Invariants", seen: Seen) -> Iterator[str]:
    """A leader's high watermark never falls in its epoch, and never passes the end of its log."""
    if seen.high_watermark > seen.end_offset:
        yield "the high watermark is beyond the end"
    before = seen.before
    if before is None or before.life != seen.life or not (seen.is_leader and before.is_leader):
        return
    if before.epoch == seen.epoch and seen.high_watermark < before.high_watermark:
        yield f"it was {before.high_watermark}"


@invariant("CommitNeedsMinIsr")
def commit_needs_min_isr(invariants: "Invariants", seen: Seen) -> Iterator[str]:
    """A high watermark moves only over records that min.insync.replicas replicas have (KIP-966: strict min ISR)."""
    for batch in newly_committed(seen):
        holders = [*seen.truth.holders.get(batch, {})]
        if len(holders) < invariants.min_isr_of(seen.place):
            yield f"{batch} is committed and only nodes {holders} have it"


@invariant("ConsistentRead")
def consistent_read(_: "Invariants", seen: Seen) -> Iterator[str]:
    """What one replica shows below its high watermark, every other shows too, and for ever."""
    start = 0 if seen.before is None or seen.before.life != seen.life else seen.before.high_watermark
    start = min(start, seen.high_watermark)
    committed = seen.truth.committed
    for batch in seen.view.below(seen.high_watermark):
        if batch.end_offset > seen.truth.end_offset:
            break
        if batch.end_offset > start and batch != committed_at(committed, batch).batch:
            yield f"{batch} here, {committed_at(committed, batch).batch} was committed"
            return


@invariant("NoCommittedRecordLost")
def no_committed_record_lost(_: "Invariants", seen: Seen) -> Iterator[str]:
    """Only a leader decides what is committed; a follower's high watermark never runs ahead of every leader's."""
    if seen.is_leader:
        for batch in newly_committed(seen):
            seen.truth.committed.append(Committed(batch, seen.epoch))
    elif seen.high_watermark > seen.truth.end_offset and seen.truth.committed:
        yield f"leaders have committed up to {seen.truth.end_offset}"


def newly_committed(seen: Seen) -> list[Written]:
    """What a leader's high watermark has passed that no leader's had before."""
    if not seen.is_leader or seen.high_watermark <= seen.truth.end_offset:
        return []
    return [one for one in seen.view.below(seen.high_watermark) if one.end_offset > seen.truth.end_offset]


def committed_at(committed: list[Committed], batch: Written) -> Committed:
    low, high = 0, len(committed)
    while low < high:
        middle = (low + high) // 2
        if committed[middle].batch.end_offset < batch.end_offset:
            low = middle + 1
        else:
            high = middle
    return committed[low]


class Invariants:
    """All checks over one run."""

    def __init__(self, simulation: Any) -> None:
        self.simulation = simulation
        self.truths: dict[Place, Truth] = {}
        self.views: dict[tuple[int, Place], View] = {}
        self.checks = 0
        self._seen: dict[tuple[int, Place], Seen] = {}
        self._marks: dict[tuple[int, Place], tuple[Any, ...]] = {}

    def min_isr_of(self, place: Place) -> int:
        return self.simulation.shape.min_isr if place[0] == "t" else 1

    def check(self, node: Any) -> None:
        """A step of this node is done."""
        broker = getattr(node.server, "broker", None)
        if broker is None or broker.replicas is None:
            return
        for partition in broker.replicas:
            log = partition.log
            key = node.node_id, (partition.topic, partition.index)
            mark = (
                partition.high_watermark, log.log_end_offset, partition.is_leader, partition.leader_epoch,
                log._truncations, node.lives,
            )  # fmt: skip
            if self._marks.get(key) != mark:
                self._marks[key] = mark
                self._check(key, mark, log)

    def _check(self, key: tuple[int, Place], mark: tuple[Any, ...], log: Any) -> None:
        node_id, place = key
        truth = self.truths.setdefault(place, Truth(place))
        view = self.views.setdefault(key, View(node_id, place))
        high_watermark, end_offset, is_leader, epoch, truncations, life = mark
        added = view.follow(log, truncations + life * 1_000_000)
        before = self._seen.get(key)
        if before is not None:
            before.before = None
        seen = Seen(node_id, life, place, high_watermark, end_offset, is_leader, epoch, view, truth, added, before)
        self._seen[key] = seen
        self.checks += 1
        for one in INVARIANTS:
            for problem in one.check(self, seen):
                self.simulation.fail(f"{one.name}: {seen}: {problem}")

    def acknowledged(self, place: Place, last_offset: int) -> None:
        """A producer has been told that this is committed."""
        truth = self.truths.get(place)
        if truth is None or truth.end_offset <= last_offset:
            end = 0 if truth is None else truth.end_offset
            self.simulation.fail(
                f"AcknowledgedIsCommitted: {place_text(place)}@{last_offset} was acknowledged; committed up to {end}"
            )

    def missing_at_the_end(self) -> list[str]:
        """What keeps the cluster from being whole again."""
        missing = []
        nodes = {node.node_id: node for node in self.simulation.nodes}
        for place, truth in self.truths.items():
            ends = {one.node_id: one.end_offset for key, one in self._seen.items() if key[1] == place}
            if len(set(ends.values())) > 1:
                missing.append(f"{place_text(place)} ends at {ends}")
            leaders = [
                one
                for key, one in self._seen.items()
                if key[1] == place and one.is_leader and nodes[one.node_id].lives == one.life
            ]
            if not leaders:
                missing.append(f"{place_text(place)} has no leader")
            elif leaders[-1].high_watermark != leaders[-1].end_offset:
                missing.append(f"{place_text(place)}: {leaders[-1]}")
            del truth
        return missing
