"""What a running local cluster would do to its nodes if its resource were another: nothing of it is done."""

from collections.abc import Iterator

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.plan import NodeAction, RestartNode, StartNode
from kavka_operator.domain.seen import SeenNode
from kavka_operator.platform.local import members
from kavka_operator.platform.local.files import read_text
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.rendering import local_nodes
from kavka_operator.platform.nodes import nodes_of
from kavka_operator.reconcile.rollout.diagnose import have_changed


def node_actions(layout: Layout, cluster: KafkaCluster) -> Iterator[NodeAction]:
    """The nodes that would be started and restarted, from the settings that each was last started with."""
    known = members.read(layout)
    for node in local_nodes(cluster, layout, known.joined_by(cluster, lambda _: True)):
        settings = read_text(layout.properties(node.id))
        if settings is None:
            yield StartNode(node.id)
        elif changed := node.changed(settings):
            yield RestartNode(node.id, have_changed(changed))


def surplus_nodes(layout: Layout, cluster: KafkaCluster) -> list[SeenNode]:
    """The nodes that run and that the resource does not want."""
    known = members.read(layout)
    wanted = {node.id for node in nodes_of(cluster, known.pools)}
    running = [node for node in known.offsets if node not in wanted and layout.pid(node).exists()]
    return [SeenNode(node, "Running") for node in running]
