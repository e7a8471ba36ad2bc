"""The nodes of a cluster: ids, roles, racks, and the settings that follow from the resource. Pure.

The ids of a pool begin at `NODE_IDS_PER_POOL` times its place in the list; racks go round the nodes of a pool. Three
brokers instead of one are a change of `replicas`, and nothing here knows how many there are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kavka_operator.api.cluster import NODE_IDS_PER_POOL, KafkaCluster, NodePool
from kavka_operator.api.settings import dynamic

CONTROLLER = "CONTROLLER"
REPLICAS_MAX = 3


@dataclass(frozen=True, slots=True)
class Node:
    """One node."""

    id: int
    pool: NodePool
    rack: str | None

    @property
    def roles(self) -> tuple[str, ...]:
        return self.pool.roles

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles


def nodes_of(cluster: KafkaCluster) -> list[Node]:
    """Every node that the resource wants, in order of their ids."""
    return list(_numbered(cluster))


def _numbered(cluster: KafkaCluster) -> Iterator[Node]:
    for place, pool in enumerate(cluster.spec.node_pools):
        for index in range(pool.replicas):
            rack = pool.racks[index % len(pool.racks)] if pool.racks else None
            yield Node(place * NODE_IDS_PER_POOL + index, pool, rack)


def common_properties(cluster: KafkaCluster, nodes: Sequence[Node]) -> dict[str, str]:
    """Defaults that follow from how many brokers there are; `spec.config` may say otherwise."""
    brokers = sum(node.is_broker for node in nodes)
    replicas = str(min(REPLICAS_MAX, brokers))
    in_sync = str(max(1, min(REPLICAS_MAX, brokers) - 1))
    return {
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        **{name: value for name, value in cluster.spec.config.items() if not dynamic(name)},
    }
