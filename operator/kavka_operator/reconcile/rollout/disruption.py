"""Which nodes may others take away now: whoever drains a machine, or makes room on it.

Kubernetes asks nobody before it evicts a pod, it looks at a budget. So every node has one of its own, which is open
only while `check` would let a roll take that node. Several stand open only where their nodes could go together, because
they may all be used at once; by default that is one (`spec.rollout.maxConcurrent`).

One whose machine is to be emptied is chosen first, otherwise the first in order, the active controller last. While a
node is away or on its way, all others stay; the node itself may go where nothing counts on it any more, so that a
broker that crashes keeps no machine from being emptied. One whose volume was deleted stays: the volume lasts as long
as its pod, and whoever deletes both means it.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from kavka_operator.domain.name_lists import named
from kavka_operator.domain.observed import SeenCluster, SeenNode, Survey, WantedNode
from kavka_operator.reconcile.rollout.batches import neighbours
from kavka_operator.reconcile.rollout.check import obstacles
from kavka_operator.reconcile.rollout.diagnose import Diagnosis, Standing, diagnose

NOBODY: AbstractSet[int] = frozenset()
SERVING = {Standing.CURRENT, Standing.STALE}


def why_not(
    nodes: Sequence[WantedNode],
    seen: Mapping[int, SeenNode],
    cluster: SeenCluster | None,
    survey: Survey | None,
    *,
    most: int = 1,
    asked: AbstractSet[int] = NOBODY,
) -> dict[int, str]:
    """Reasons why nodes may not be taken away now, by id; empty words for a node that may.

    `most` may go at the same time; `asked` are the nodes whose machine is to be emptied.
    """
    if survey is None or cluster is None:
        return {node.id: "no broker answers" for node in nodes}
    if survey.doubt:
        return {node.id: survey.doubt for node in nodes}
    diagnoses = diagnose(nodes, seen, cluster, survey)
    absent = [node.id for node in nodes if node.id not in seen]
    away = [diagnosis for diagnosis in diagnoses if diagnosis.standing not in SERVING]
    if absent or away:
        return _while_away(nodes, absent, away, survey)
    return _together(diagnoses, survey, most, asked)


def open_ones(reasons: Mapping[int, str]) -> frozenset[int]:
    """The nodes that may go."""
    return frozenset(number for number, words in reasons.items() if not words)


def _while_away(
    nodes: Sequence[WantedNode], absent: Sequence[int], away: Sequence[Diagnosis], survey: Survey
) -> dict[int, str]:
    """The reasons while some nodes are away: only those go that nobody counts on."""
    missing = sorted({*absent, *(diagnosis.id for diagnosis in away)})
    reasons = {node.id: f"{named(missing)} {'is' if len(missing) == 1 else 'are'} away" for node in nodes}
    gone: set[int] = set()
    for diagnosis in away:
        if diagnosis.standing is Standing.STOPPING:
            continue
        alone = obstacles({diagnosis.id}, survey, serving=False)
        words = alone or obstacles(gone | {diagnosis.id}, survey, serving=False)
        words = [diagnosis.emptied] if diagnosis.emptied else words
        reasons[diagnosis.id] = words[0] if words else ""
        gone |= set() if words else {diagnosis.id}
    return reasons


def _together(diagnoses: Sequence[Diagnosis], survey: Survey, most: int, asked: AbstractSet[int]) -> dict[int, str]:
    """The reasons while all nodes serve: as many go as may go together."""
    active, beside = survey.quorum.leader, neighbours(survey.partitions)
    order = sorted(diagnoses, key=lambda found: (found.id not in asked, found.id == active, found.id))
    chosen: set[int] = set()
    reasons = {}
    for diagnosis in order:
        if diagnosis.emptied:
            reasons[diagnosis.id] = diagnosis.emptied
            continue
        words = obstacles(chosen | {diagnosis.id}, survey)
        if len(chosen) >= most or chosen & beside.get(diagnosis.id, set()):
            words = [f"{named(sorted(chosen))} may go first"]
        reasons[diagnosis.id] = words[0] if words else ""
        chosen |= set() if words else {diagnosis.id}
    return reasons
