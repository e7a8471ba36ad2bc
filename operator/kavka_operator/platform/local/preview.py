"""The nodes of a local cluster as they would be if its resource were another: nothing is started or written."""

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.observed import SeenNode
from kavka_operator.platform.local import node_identity, volumes
from kavka_operator.platform.local.files import read_text
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.server_properties import LocalNode, fingerprint, local_nodes, wanted_node

FORMER = "former"
"""The fingerprint of settings that are not those that are wanted."""


def foreseen(cluster: KafkaCluster, layout: Layout) -> View:
    """The nodes that the resource wants, and those that run with the settings that each was last started with."""
    known = node_identity.read(layout).joined_by(cluster, lambda _: True)
    nodes = {node.id: node for node in local_nodes(cluster, layout, known)}
    started = {number: text for number in known.offsets if (text := _started_with(layout, number, nodes)) is not None}
    return View(
        wanted=[wanted_node(node) for node in nodes.values()],
        seen={number: _seen(number, nodes.get(number), text) for number, text in started.items()},
        volumes={number: volumes.look(layout, number, known.volumes.get(number, {})) for number in nodes},
        pools=known.pools,
    )


def _started_with(layout: Layout, number: int, wanted: dict[int, LocalNode]) -> str | None:
    """The settings of a node that runs; None of one that was never started, or is no longer wanted and has gone."""
    is_there = number in wanted or layout.pid(number).exists()
    return read_text(layout.properties(number)) if is_there else None


def _seen(number: int, node: LocalNode | None, settings: str) -> SeenNode:
    changed = node.changed(settings) if node is not None else ()
    mark = fingerprint(node) if node is not None and not changed else FORMER
    return SeenNode(number, "Running", mark, changed=changed)
