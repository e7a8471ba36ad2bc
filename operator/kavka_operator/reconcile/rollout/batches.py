"""Which nodes may be restarted together: those that share no partition, and whose controllers leave a majority.

Such nodes take nothing from each other: a partition loses one replica, however many of them are down. Where brokers
are in racks and replicas are spread over them, a whole rack can go at once. The first node in order begins the batch,
and where it may not go, nothing goes: a roll waits for what is in its way, and says so. Next comes always the node
that rules out the fewest further ones: most of those that share partitions with it are ruled out already. That finds
racks without being told of them.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kavka_operator.domain.observed import SeenPartition, Survey
from kavka_operator.reconcile.rollout.check import obstacles
from kavka_operator.reconcile.rollout.diagnose import Diagnosis, Standing


@dataclass(frozen=True, slots=True)
class Batch:
    """The nodes to restart now; or, where there is none, what stands in the way of the first."""

    nodes: tuple[Diagnosis, ...] = ()
    obstacles: tuple[str, ...] = ()


def next_batch(order: Sequence[Diagnosis], survey: Survey, most: int) -> Batch:
    """The first node of `order`, with as many others as may go with it, `most` together."""
    first, *others = order
    found = obstacles({first.id}, survey, serving=first.standing is Standing.STALE)
    if found:
        return Batch(obstacles=(f"{first.name} may not go down: {found[0]}", *found[1:]))
    beside = neighbours(survey.partitions)
    batch, left = [first], [other for other in others if other.standing is first.standing]
    ruled_out = beside.get(first.id, set()) | {first.id}
    while len(batch) < most and (left := [other for other in left if other.id not in ruled_out]):
        diagnosis = _least_costly(left, beside, ruled_out, survey.quorum.leader)
        ids = {other.id for other in [*batch, diagnosis]}
        ruled_out = ruled_out | {diagnosis.id}
        if not obstacles(ids, survey, serving=first.standing is Standing.STALE):
            batch.append(diagnosis)
            ruled_out |= beside.get(diagnosis.id, set())
    return Batch(tuple(batch))


def neighbours(partitions: Sequence[SeenPartition]) -> dict[int, set[int]]:
    """The nodes with which each node shares a partition."""
    found: dict[int, set[int]] = {}
    for replicas in {frozenset(partition.replicas) for partition in partitions}:
        for number in replicas:
            found.setdefault(number, set()).update(replicas - {number})
    return found


def _least_costly(
    left: Sequence[Diagnosis], beside: Mapping[int, AbstractSet[int]], ruled_out: AbstractSet[int], active: int | None
) -> Diagnosis:
    """The node that rules out the fewest others; the active controller only where no other is left."""
    ids = {diagnosis.id for diagnosis in left}

    def cost(diagnosis: Diagnosis) -> tuple[bool, int, int, int]:
        near = beside.get(diagnosis.id, set())
        return diagnosis.id == active, len(near & ids), -len(near & ruled_out), diagnosis.id

    return min(left, key=cost)
