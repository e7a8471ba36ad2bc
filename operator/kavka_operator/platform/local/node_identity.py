"""What a node is given when it is first seen, and keeps: its id, its ports, its volumes, and a vote.

Ids belong to the name of a pool; they are noted when it is first seen (`domain/node_ids`).

The first broker has the ports of the resource, every other node the next ones that are free, all of its ports the
same distance (`offset`) above. They are kept because clients have them in their configuration. Who votes is fixed
when the cluster is first started: were controllers added to a quorum of a given size, the newcomers could be a majority
that knows nothing of what was decided before. The volumes are noted once they are formatted, the one with the metadata
log first, so that one that is gone later is missed and the metadata log is never looked for elsewhere.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kavka_broker.core.config.properties import parse_properties
from kavka_operator.api.cluster import KafkaCluster, Listener
from kavka_operator.api.pools import NODE_IDS_PER_POOL
from kavka_operator.api.security import CONTROLLER, CONTROLLER_PORT_STEP, NODES, PORT_MAX
from kavka_operator.domain.node_ids import first_ids
from kavka_operator.platform.local.files import read_text, write_whole
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.yaml_directory import SUFFIX, Folder
from kavka_operator.platform.nodes import Node, nodes_of
from kavka_operator.platform.security import among_nodes

META_PROPERTIES = "meta.properties"
HOST = "127.0.0.1"  # the address of listeners that name none
OFFSET_MAX = 4096


@dataclass(frozen=True, slots=True)
class Members:
    """The nodes that were ever seen: how far above the resource's their ports lie, who votes, and their volumes.

    `pools` are the first ids of all pools that were ever seen.
    """

    offsets: Mapping[int, int] = field(default_factory=dict)
    voters: tuple[int, ...] = ()
    volumes: Mapping[int, Mapping[str, str]] = field(default_factory=dict)  # by name, the ids of their directories
    pools: Mapping[str, int] = field(default_factory=dict)

    def formatted(self, node: int, volumes: Mapping[str, str]) -> "Members":
        """The members with the volumes that a node has now; the volume with the metadata log stays the first."""
        first = self.metadata_volume(node)
        ordered = sorted(volumes, key=lambda name: name != first)
        return replace(self, volumes={**self.volumes, node: {name: volumes[name] for name in ordered}})

    def metadata_volume(self, node: int) -> str | None:
        """The volume with the metadata log; None before the node is formatted."""
        return next(iter(self.volumes.get(node, ())), None)

    def joined_by(self, cluster: KafkaCluster, is_free: Callable[[int], bool]) -> "Members":
        """The members with the nodes that the resource wants now. `is_free` tells whether a port can be used."""
        pools = first_ids(cluster.spec.node_pools, self.pools)
        nodes = sorted(nodes_of(cluster, pools), key=lambda node: (not node.is_broker, node.id))
        offsets = dict(self.offsets)
        taken = {port for node in nodes if node.id in offsets for port in ports_of(cluster, node, offsets[node.id])}
        for node in nodes:
            if node.id not in offsets:
                offsets[node.id] = _next_offset(cluster, node, taken, is_free if offsets else lambda _: True)
                taken.update(ports_of(cluster, node, offsets[node.id]))
        voters = self.voters or tuple(sorted(node.id for node in nodes if node.is_controller))
        return Members(offsets, voters, self.volumes, pools)


def read(layout: Layout) -> Members:
    """The members of a cluster; none before its first start."""
    text = read_text(layout.members)
    if text is None:
        return _of_one_node(layout)
    value = json.loads(text)
    offsets = {int(node): offset for node, offset in value["portOffsets"].items()}
    noted = {int(node): dict(names) for node, names in value.get("volumes", {}).items()}
    volumes = {node: names for node in offsets if (names := noted.get(node) or _volumes_of(layout, node))}
    pools = value["pools"] if "pools" in value else _pools_of(layout)
    return Members(offsets, tuple(value["voters"]), volumes, pools)


def _of_one_node(layout: Layout) -> Members:
    """The members of a cluster of the first version, which ran one node and kept only its settings."""
    if not layout.properties(0).exists():
        return Members()
    return Members({0: 0}, (0,), {0: names} if (names := _volumes_of(layout, 0)) else {}, _pools_of(layout))


def _pools_of(layout: Layout) -> dict[str, int]:
    """The first ids of the pools of a cluster that an earlier version ran, where they followed from the list."""
    stored = Folder(layout.resources).value(f"{KafkaCluster.kind_name.lower()}.{layout.cluster}{SUFFIX}")
    try:
        names = [str(pool["name"]) for pool in stored["spec"]["nodePools"]]
    except (KeyError, TypeError):  # it cannot be understood, and is not run before it is mended
        names = []
    return {name: place * NODE_IDS_PER_POOL for place, name in enumerate(names)}


def _volumes_of(layout: Layout, node: int) -> dict[str, str]:
    """The volumes of a node that an earlier version ran, which did not note them: those of its settings."""
    settings = parse_properties(read_text(layout.properties(node)) or "")
    paths = [Path(path) for path in settings.get("log.dirs", "").split(",") if path]
    has_run = any(path.is_dir() and any(entry.is_dir() for entry in path.iterdir()) for path in paths)
    return {path.name: directory_id(path) or f"{node}/{path.name}" for path in paths} if has_run else {}


def directory_id(path: Path) -> str | None:
    """The id of a log directory; None where it is not formatted, or does not say."""
    return parse_properties(read_text(path / META_PROPERTIES) or "").get("directory.id")


def upgrade(layout: Layout) -> Members:
    """The members, which are written where an earlier version left the ids to the order of the pools in the resource.

    To be called before the resource is changed.
    """
    known = read(layout)
    if known.offsets and known.pools:
        keep(layout, known)
    return known


def keep(layout: Layout, members: Members) -> None:
    """Write the members."""
    value = {
        "portOffsets": {str(node): offset for node, offset in members.offsets.items()},
        "voters": members.voters,
        "pools": dict(members.pools),
        "volumes": {str(node): dict(volumes) for node, volumes in members.volumes.items()},
    }
    write_whole(layout.members, json.dumps(value, indent=2) + "\n")


def ports_of(cluster: KafkaCluster, node: Node, offset: int) -> tuple[int, ...]:
    """Every port that the node opens."""
    metrics = cluster.spec.metrics
    own = [listener.port for listener in listeners_of(cluster, node, offset)]
    return (*own, *((metrics.port + offset,) if metrics.enabled else ()))


def listeners_of(cluster: KafkaCluster, node: Node, offset: int) -> list[Listener]:
    """The listeners that the node opens, with its own ports; the controllers' lies `CONTROLLER_PORT_STEP` higher."""
    declared = {listener.name: listener for listener in cluster.spec.listeners}
    clients = [listener for name, listener in declared.items() if name != CONTROLLER]
    controller = declared.get(CONTROLLER) or clients[0].replaced(
        {"name": CONTROLLER, "port": clients[0].port + CONTROLLER_PORT_STEP, "advertised": None}
    )
    if cluster.spec.is_secured and NODES not in declared:
        clients.append(among_nodes(cluster))
    wanted = (clients if node.is_broker else []) + ([controller] if node.is_controller else [])
    return [listener.replaced({"port": listener.port + offset, "host": listener.host or HOST}) for listener in wanted]


def _next_offset(cluster: KafkaCluster, node: Node, taken: set[int], is_free: Callable[[int], bool]) -> int:
    for offset in range(OFFSET_MAX):
        ports = ports_of(cluster, node, offset)
        if not taken & set(ports) and (max(ports) > PORT_MAX or all(map(is_free, ports))):
            return offset
    return OFFSET_MAX
