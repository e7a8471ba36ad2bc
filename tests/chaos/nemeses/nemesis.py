"""One kind of fault, and whom it may hit."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.chaos.asking import partitions_of
from tests.chaos.nodes import Cluster, Node
from tests.chaos.workload import TOPIC

Strike = Callable[[Cluster, random.Random], str]


@dataclass(frozen=True, slots=True)
class Nemesis:
    """A kind of fault. `strike` does it and says what it did."""

    name: str
    strike: Strike
    needs_network: bool = False
    needs_disk: bool = False


def leader_of_most(cluster: Cluster) -> Node:
    """The node that leads most partitions; any node where none answers."""
    for node in cluster.nodes:
        try:
            led = [partition.leader for partition in partitions_of(node.address, TOPIC)]
        except OSError:
            continue
        known = {other.node_id for other in cluster.nodes}
        leading = [leader for leader in led if leader in known]
        if leading:
            return cluster.node(max(sorted(set(leading)), key=leading.count))
    return cluster.nodes[0]


def minority(cluster: Cluster) -> int:
    return (len(cluster.nodes) - 1) // 2


def names(nodes: Sequence[Node]) -> str:
    return ", ".join(str(node.node_id) for node in sorted(nodes, key=lambda node: node.node_id))
