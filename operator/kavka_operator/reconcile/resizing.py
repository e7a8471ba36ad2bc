"""More or less processor and memory for nodes that take them while they run: one node at a time.

It is no restart, so no hold, approval or window stands in its way. The next node waits until the one before has what it
was given, so that a machine without room for it, or a limit that is too low, is met with one node. That node alone may
be given something else meanwhile.
"""

from collections.abc import Mapping, Sequence

from kavka_operator.domain.observed import SeenNode, WantedNode
from kavka_operator.domain.plan import ClusterPlan, Plan, ResizeNode, reconciling, stalled
from kavka_operator.reconcile.rollout.diagnose import have_changed

REASON = "Resizing"
REFUSED = "ResizeRefused"
INFEASIBLE = "Infeasible"


def resize(nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode]) -> ClusterPlan | None:
    """The next step, where all nodes run; None where each has what is asked for."""
    ours = [seen[node.id] for node in nodes if node.id in seen]
    waiting = next((node for node in ours if node.resizing), None)
    if waiting is not None and not waiting.is_in_place:
        return _waiting(waiting)
    for node in ours if waiting is None else [waiting]:
        if node.is_in_place:
            action = ResizeNode(node.id, have_changed(node.changed))
            return Plan((action,), reconciling(REASON, str(action)))
    return None


def _waiting(node: SeenNode) -> ClusterPlan:
    """Wait for a node that was given what is asked for."""
    if node.resizing.startswith(INFEASIBLE):
        return Plan(words=stalled(REFUSED, f"{_waits(node)}; ask for less, or delete its pod when that may be"))
    return Plan(words=reconciling(REASON, _waits(node)))


def resizes(nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode]) -> tuple[ResizeNode, ...]:
    """All nodes that are to have other amounts, and take them while they run."""
    ours = [seen[node.id] for node in nodes if node.id in seen]
    return tuple(ResizeNode(node.id, have_changed(node.changed)) for node in ours if node.is_in_place)


def _waits(node: SeenNode) -> str:
    return f"node {node.id} runs with the processor and memory that it had: {node.resizing}"
