"""The nodes of a cluster: ids, roles, racks, and the settings that follow from the resource. Pure.

The ids of a pool belong to its name (`domain/node_ids`); racks go round the nodes of a pool. Three brokers instead of
one are a change of `replicas`, and nothing here knows how many there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kavka_operator.api.cluster import AUDIT_KEY_FILE, KafkaCluster
from kavka_operator.api.pools import NodePool
from kavka_operator.api.settings import dynamic
from kavka_operator.domain.node_ids import first_ids

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


def nodes_of(cluster: KafkaCluster, pools: Mapping[str, int]) -> list[Node]:
    """Every node that the resource wants, in order of their ids. `pools` are the first ids of pools that are known."""
    firsts = first_ids(cluster.spec.node_pools, pools)
    nodes = [
        Node(firsts[pool.name] + index, pool, pool.racks[index % len(pool.racks)] if pool.racks else None)
        for pool in cluster.spec.node_pools
        for index in range(pool.replicas)
    ]
    return sorted(nodes, key=lambda node: node.id)


def brokers_wanted(cluster: KafkaCluster) -> int:
    """The number of brokers among the nodes that the resource wants."""
    return sum(pool.replicas for pool in cluster.spec.node_pools if "broker" in pool.roles)


def audit_properties(cluster: KafkaCluster, key_file: str) -> dict[str, str]:
    """The setting that turns the audit trail on, with the file of its key; nothing where none is wanted."""
    return {AUDIT_KEY_FILE: key_file} if cluster.spec.is_audited else {}


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
