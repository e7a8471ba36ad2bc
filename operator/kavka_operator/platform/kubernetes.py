"""Nodes as pods. Not there yet: this platform knows the nodes that a resource wants, and says that it cannot run them.

It exists so that the operator starts, reads all resources and reports honestly: a KafkaCluster becomes `Ready=False`
with the reason `PlatformUnavailable`, instead of looking as if something were on its way.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.plan import NodeAction
from kavka_operator.domain.seen import SeenNode, WantedNode
from kavka_operator.loop.seams import PlatformUnavailableError
from kavka_operator.platform.nodes import common_properties, nodes_of


class KubernetesPlatform:
    """A `Platform` that cannot run nodes yet."""

    def wanted(self, cluster: KafkaCluster) -> Sequence[WantedNode]:
        """The nodes that the resource wants."""
        nodes = nodes_of(cluster)
        settings = sha256(repr(sorted(common_properties(cluster, nodes).items())).encode()).hexdigest()[:16]
        return [WantedNode(node.id, settings, node.rack, node.roles) for node in nodes]

    def seen(self) -> Mapping[int, SeenNode]:
        """No node: none was ever started."""
        return {}

    def perform(self, action: NodeAction) -> None:
        """Raise PlatformUnavailableError, with the reason."""
        raise PlatformUnavailableError(
            f"cannot {action}: this version runs brokers with `kavka up` on one machine, not as pods yet"
        )
