"""Nodes that go take no new replicas meanwhile (KIP-1066), and those that are wanted again do.

That a node is to be cordoned stands in the status before Kafka is asked for it, so that an operator that dies in
between leaves no node cordoned that nobody knows of. Just before a node is stopped its cordon is taken away, as it
would hold for the next node of that id. Where Kafka refuses, as with a metadata.version below 4.3, nodes are emptied
all the same.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from kavka_operator.api.cluster_status import NodeStatus
from kavka_operator.domain.name_lists import named
from kavka_operator.domain.observed import SeenNode, WantedNode
from kavka_operator.domain.plan import ClusterPlan, CordonNode, MoveReplicas, Plan, StopNode, reconciling


def marked(lines: Sequence[NodeStatus]) -> set[int]:
    """The nodes that the status says are cordoned as they go."""
    return {line.id for line in lines if line.cordoned}


def cordon(
    plan: ClusterPlan, surplus: Sequence[SeenNode], lines: Sequence[NodeStatus], live: Collection[int]
) -> ClusterPlan:
    """The plan that takes nodes away, with their cordons; `live` are the brokers that answer."""
    if not any(isinstance(action, StopNode | MoveReplicas) for action in plan.actions):
        return plan
    going, known = [node.id for node in surplus if node.id in live], marked(lines)
    if new := [number for number in going if number not in known]:
        return Plan(words=reconciling("Shrinking", f"{named(new)}: to take no new replicas"))
    stopped = {action.node for action in plan.actions if isinstance(action, StopNode)}
    cordons = [CordonNode(number, is_on=number not in stopped) for number in going]
    return replace(plan, actions=(*cordons, *plan.actions))


def release(
    plan: ClusterPlan, wanted: Collection[int], lines: Sequence[NodeStatus], live: Collection[int]
) -> ClusterPlan:
    """The plan, with nodes that are wanted again taking new replicas again."""
    back = sorted(marked(lines) & {*wanted} & {*live})
    return replace(plan, actions=(*(CordonNode(number, is_on=False) for number in back), *plan.actions))


def marks(
    lines: Sequence[NodeStatus], wanted: Sequence[WantedNode], leaving: Sequence[WantedNode], done: Collection[object]
) -> set[int]:
    """The nodes to mark in the next status, behind what was done."""
    released = {action.node for action in done if isinstance(action, CordonNode) and not action.is_on}
    going = {node.id for node in leaving if "broker" in node.roles}
    return (going | (marked(lines) & {node.id for node in wanted})) - released
