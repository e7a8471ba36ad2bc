"""A `Platform` that knows which nodes a resource wants, and can run none of them."""

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.observed import WantedNode
from kavka_operator.domain.plan import NodeAction
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.nodes import nodes_of


class Nowhere:
    """Runs no node."""

    def look(self, cluster: KafkaCluster) -> View:
        nodes = nodes_of(cluster, cluster.status.first_ids)
        return View([WantedNode(node.id, "same", node.rack, node.roles, pool=node.pool.name) for node in nodes])

    def perform(self, action: NodeAction) -> None:
        raise PlatformUnavailableError(f"cannot {action}: there is no room for nodes")

    def allow(self, cluster: KafkaCluster, nodes: frozenset[int]) -> bool:
        return False
