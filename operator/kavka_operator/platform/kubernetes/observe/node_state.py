"""The nodes of a cluster as its resource wants them, beside what its objects say of them. Pure.

The operator looks at its pods with it, and so does a command that asks what another resource would do to them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kavka_broker.core.config.properties import parse_properties
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.security import CONTROLLER
from kavka_operator.domain.node_ids import first_ids
from kavka_operator.domain.observed import ControllerPlace, SeenNode, SeenVolume, WantedNode
from kavka_operator.platform.kubernetes.objects.names import DIRECTORY_ID, annotation
from kavka_operator.platform.kubernetes.objects.pod_template import overrides
from kavka_operator.platform.kubernetes.objects.quantities import plain
from kavka_operator.platform.kubernetes.objects.settings import (
    ADVERTISED,
    Layout,
    changed,
    controller_port,
    fingerprint,
    properties,
)
from kavka_operator.platform.kubernetes.objects.spec_hash import is_as_asked
from kavka_operator.platform.kubernetes.observe import node_objects, pod_resources
from kavka_operator.platform.kubernetes.observe.listeners import controllers_elsewhere
from kavka_operator.platform.kubernetes.observe.node_objects import Known
from kavka_operator.platform.kubernetes.observe.services import outside
from kavka_operator.platform.kubernetes.observe.zones import Machine, racked
from kavka_operator.platform.nodes import nodes_of
from kavka_operator.reconcile.rollout.restart import RESTART, restart_mark
from kavka_operator.reconcile.volumes import forgotten


@dataclass(frozen=True, slots=True)
class Sight:
    """The nodes of a cluster. `layouts` are those that are wanted, `pools` the first ids of its pools.

    `kept` says of nodes why they do not take other resources while they run; `given_up` names what a person has given
    up of what volumes hold.
    """

    known: Known
    layouts: Mapping[int, Layout]
    pools: Mapping[str, int]
    kept: Mapping[int, str] = field(default_factory=dict)
    given_up: Collection[str] = ()

    @classmethod
    def of(cls, cluster: KafkaCluster, known: Known, machines: Sequence[Machine] = ()) -> "Sight":
        """The nodes that a cluster wants, and what is known of its objects; racks are drawn from `machines`."""
        firsts = {**cluster.status.first_ids, **known.pools}
        nodes = racked(nodes_of(cluster, firsts), known, machines)
        layouts = {
            node.id: Layout(
                cluster,
                nodes,
                node,
                known.metadata_volume(node.id) or node.pool.storage.volumes[0].name,
                outside(cluster, known, node),
            )
            for node in nodes
        }
        elsewhere = controllers_elsewhere(known, layouts)
        if elsewhere:
            layouts = {number: replace(layout, controllers_at=elsewhere) for number, layout in layouts.items()}
        return cls(known, layouts, first_ids(cluster.spec.node_pools, firsts), given_up=forgotten(cluster))

    def seen(self) -> dict[int, SeenNode]:
        """Every node that was started, with the settings of it that are wanted otherwise."""
        found = node_objects.seen_nodes(self.known, {number: tuple(self._changes(number)) for number in self.layouts})
        forgiven = {number: node for number, node in found.items() if node.life in self.given_up and node.life}
        found |= {number: replace(node, is_given_up=True) for number, node in forgiven.items()}
        return found | {number: self._judged(found[number]) for number in found.keys() & self.layouts.keys()}

    def wanted(self) -> list[WantedNode]:
        """The nodes as the reconcilers know them."""
        return [self._wanted(layout) for layout in self.layouts.values()]

    def volumes(self) -> dict[int, tuple[SeenVolume, ...]]:
        """The volumes of each node that is wanted."""
        return {number: self._volumes(layout) for number, layout in self.layouts.items()}

    def leaving(self) -> list[WantedNode]:
        """The nodes that are there and that the resource does not want."""
        there = sorted({*self.known.sets, *self.known.pods})
        return [node_objects.former_node(self.known, number) for number in there if number not in self.layouts]

    def _changes(self, number: int) -> Iterator[str]:
        """The settings in which a node runs with others than it is to have."""
        if number not in {*self.known.sets, *self.known.pods}:
            return
        layout = self.layouts[number]
        yield from (found := [*self._changes_of_broker(layout)])
        if not found and not node_objects.is_level(self.known, layout):
            yield from self._other_changes(layout)

    def _by_restart(self, layout: Layout) -> str | None:
        """The reason why the broker of a node takes other resources by a restart alone; None if it need not restart."""
        return self.kept.get(layout.node.id) or pod_resources.obstacle(self.known, layout)

    def _changes_of_broker(self, layout: Layout) -> Iterator[str]:
        """The changes that a person asked for by name."""
        number, image = layout.node.id, layout.cluster.spec.image
        settings = changed(node_objects.settings_of(self.known, number), properties(layout))
        yield from settings
        if restart_mark(layout.cluster) != annotation(node_objects.template_of(self.known, number), RESTART):
            yield f"the annotation {RESTART}"
        is_other = image is not None and image != node_objects.image_of(self.known, number)
        if is_other:
            yield "spec.image"
        if plain(layout.node.pool.resources) != plain(node_objects.resources_of(self.known, number)):
            alone = not settings and not is_other
            why = f" (by a restart: {words})" if alone and (words := self._by_restart(layout)) else ""
            yield f"resources of spec.nodePools[{layout.node.pool.name}]{why}"

    def _other_changes(self, layout: Layout) -> Iterator[str]:
        """The change where the broker's own settings are as they were: what its listeners follow from, or its pod."""
        number, pool = layout.node.id, layout.node.pool
        settings = [
            parse_properties(text) for text in (node_objects.settings_of(self.known, number), properties(layout))
        ]
        listeners, advertised = ([found.get(key) for found in settings] for key in ("listeners", ADVERTISED))
        if listeners[0] != listeners[1]:
            yield "listeners"
        elif advertised[0] != advertised[1] or not {*overrides(layout)} <= {
            *node_objects.arguments_of(self.known, number)
        }:
            yield ADVERTISED
        else:
            yield f"pod of spec.nodePools[{pool.name}]"

    def _judged(self, node: SeenNode) -> SeenNode:
        """The node, with whether it has all that the resource asks of it."""
        layout, started = self.layouts[node.id], node_objects.template_of(self.known, node.id)
        mark = fingerprint(layout) if node_objects.is_level(self.known, layout) else node.fingerprint
        pod = self.known.pods.get(node.id, {})
        return replace(
            node,
            fingerprint=mark,
            is_as_asked=is_as_asked(layout, started),
            is_in_place=node.id not in self.kept and pod_resources.is_in_place(self.known, layout),
            resizing=pod_resources.under_way(pod),
        )

    def _volumes(self, layout: Layout) -> tuple[SeenVolume, ...]:
        sizes = {volume.name: volume.size for volume in layout.node.pool.storage.volumes}
        return node_objects.seen_volumes(self.known, layout.node.id, sizes)

    def _wanted(self, layout: Layout) -> WantedNode:
        """A node as the reconcilers know it. A controller votes with the directory that its volume has now."""
        node, mark = layout.node, fingerprint(layout)
        claim = self.known.claims_of(node.id).get(layout.metadata)
        place = None
        if node.is_controller and claim is not None:
            port = controller_port(layout.cluster)
            place = ControllerPlace(annotation(claim, DIRECTORY_ID), layout.host, port, CONTROLLER)
        told = (node.id, mark, node.rack, node.roles, layout.claimed, node.pool.name, place)
        return WantedNode(*told, is_ephemeral=layout.is_ephemeral)
