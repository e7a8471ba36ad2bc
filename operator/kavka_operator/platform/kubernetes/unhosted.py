"""Nodes as pods, which are not there yet: the nodes that a resource wants are known, and starting them is refused.

So a KafkaCluster becomes `Ready=False` with the reason `PlatformUnavailable`, instead of looking as if something were
on its way.
"""

from hashlib import sha256

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.plan import NodeAction
from kavka_operator.domain.seen import WantedNode
from kavka_operator.loop.seams import PlatformUnavailableError, View
from kavka_operator.platform.nodes import common_properties, nodes_of


class Unhosted:
    """A `Platform` that cannot run nodes."""

    def look(self, cluster: KafkaCluster) -> View:
        """The nodes that the resource wants; none was ever started."""
        nodes = nodes_of(cluster, cluster.status.first_ids)
        settings = sha256(repr(sorted(common_properties(cluster, nodes).items())).encode()).hexdigest()[:16]
        return View([WantedNode(node.id, settings, node.rack, node.roles, pool=node.pool.name) for node in nodes])

    def perform(self, action: NodeAction) -> None:
        """Raise PlatformUnavailableError, with the reason."""
        raise PlatformUnavailableError(
            f"cannot {action}: this version runs brokers with `kavka up` on one machine, not as pods yet"
        )

    def allow(self, cluster: KafkaCluster, nodes: frozenset[int]) -> bool:
        """Change nothing: there is no node that anybody could take away."""
        return False
