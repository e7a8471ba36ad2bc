"""`server.properties` of a node on this machine, and a node from its `server.properties`."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kavka_broker.core.config.properties import format_properties, parse_properties
from kavka_operator.api.cluster import KafkaCluster, Listener
from kavka_operator.api.pools import NodePool
from kavka_operator.api.security import CONTROLLER, NODES, OF_NODES, PORT_MAX
from kavka_operator.domain.observed import WantedNode
from kavka_operator.platform.local.files import read_text
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_identity import Members, listeners_of, ports_of
from kavka_operator.platform.nodes import Node, audit_properties, common_properties, nodes_of
from kavka_operator.platform.security import protocols, secured_properties
from kavka_operator.reconcile.rollout.restart import RESTART, restart_mark


@dataclass(frozen=True, slots=True)
class LocalNode:
    """A node, where it listens, and the text of its settings."""

    node: Node
    host: str
    ports: tuple[int, ...]
    address: str
    properties: str
    metrics: str | None
    advertised: tuple[str, ...] = ()  # what clients are told, a listener each

    @property
    def is_secured(self) -> bool:
        """Whether it answers at its address only by TLS."""
        return "ssl.keystore.location" in parse_properties(self.properties)

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts at which it is reached."""
        settings = parse_properties(self.properties)
        urls = (settings.get("listeners", "") + "," + settings.get("advertised.listeners", "")).split(",")
        found = {url.rpartition("://")[2].rpartition(":")[0].strip("[]") for url in urls}
        return frozenset(found - {"", "0.0.0.0", "::"})

    @property
    def id(self) -> int:
        return self.node.id

    @property
    def told(self) -> str:
        """The address that clients begin with."""
        return self.advertised[0] if self.advertised else self.address

    @property
    def volumes(self) -> tuple[str, ...]:
        """The names of its log directories."""
        return tuple(volume.name for volume in self.node.pool.storage.volumes)

    def changed(self, properties: str) -> tuple[str, ...]:
        """The settings in which another text differs, and whether it was written before a restart was asked for."""
        mine, other = parse_properties(self.properties), parse_properties(properties)
        found = sorted(key for key in mine.keys() | other.keys() if mine.get(key) != other.get(key))
        asked = [] if _restart_line(self.properties) == _restart_line(properties) else [f"the annotation {RESTART}"]
        return (*found, *asked)


RESTART_COMMENT = f"# {RESTART} "


def _with_restart(properties: str, cluster: KafkaCluster) -> str:
    """The text of settings, with a comment that differs with each request to restart."""
    mark = restart_mark(cluster)
    return f"{properties}{RESTART_COMMENT}{sha256(mark.encode()).hexdigest()[:16]}\n" if mark else properties


def _restart_line(properties: str) -> str:
    return next((line for line in properties.splitlines() if line.startswith(RESTART_COMMENT)), "")


def former_node(layout: Layout, number: int) -> LocalNode | None:
    """A node that the resource no longer wants, as it was last started; None if its settings are not there."""
    text = read_text(layout.properties(number)) or ""
    settings = parse_properties(text)
    listeners = [url.rpartition("://")[2].rpartition(":") for url in settings.get("listeners", "").split(",")]
    if not all(port.isdecimal() for _, _, port in listeners):
        return None
    roles = tuple(settings["process.roles"].split(","))
    volumes = [{"name": Path(path).name} for path in settings["log.dirs"].split(",")]
    pool = NodePool.decode({"name": "former", "roles": roles, "storage": {"volumes": volumes}})
    names = [url.partition("://")[0] for url in settings["listeners"].split(",")]
    host, _, port = listeners[names.index(NODES) if NODES in names and "ssl.keystore.location" in settings else 0]
    metrics = settings.get("kavka.admin.listener")
    ports = [int(port) for _, _, port in listeners] + ([int(metrics.rpartition(":")[2])] if metrics else [])
    rack = settings.get("broker.rack")
    return LocalNode(Node(number, pool, rack), host, tuple(ports), f"{host}:{port}", text, metrics)


def local_nodes(cluster: KafkaCluster, layout: Layout, members: Members) -> list[LocalNode]:
    """Every node of the cluster, as it runs on this machine. `members` knows all of them."""
    nodes = nodes_of(cluster, members.pools)
    voters = ",".join(_voter(cluster, node, members) for node in nodes if node.id in members.voters)
    return [_local(cluster, layout, node, nodes, members, voters) for node in nodes]


def _local(
    cluster: KafkaCluster, layout: Layout, node: Node, nodes: list[Node], members: Members, voters: str
) -> LocalNode:
    offset = members.offsets[node.id]
    listeners = listeners_of(cluster, node, offset)
    served = [listener for listener in listeners if listener.name != CONTROLLER]
    advertised = [_advertised(listener, node) for listener in served]
    outer = next((listener for listener in served if not listener.advertised), listeners[0])
    first = next((listener for listener in served if cluster.spec.is_secured and listener.name == NODES), outer)
    metrics = f"{outer.host}:{cluster.spec.metrics.port + offset}" if cluster.spec.metrics.enabled else None
    of_spec = [listener for listener in cluster.spec.listeners if listener.name != CONTROLLER]
    # A controller alone asks brokers only to keep its audit trail.
    among = first if served else next((listener for listener in of_spec if not listener.advertised), of_spec[0])
    inside = NODES if cluster.spec.is_secured else among.name
    properties = {
        "process.roles": ",".join(sorted(node.roles)),
        "node.id": str(node.id),
        **({"broker.rack": node.rack} if node.rack else {}),
        "listeners": ",".join(map(_url, listeners)),
        **({"advertised.listeners": ",".join(map(_url, advertised))} if served else {}),
        **({"inter.broker.listener.name": inside} if served or cluster.spec.is_audited else {}),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols(cluster).items()
        ),
        "controller.listener.names": CONTROLLER,
        "controller.quorum.voters": voters,
        **_directories(layout, node, members.metadata_volume(node.id)),
        **({"kavka.admin.listener": metrics} if metrics else {}),
        **audit_properties(cluster, str(layout.audit_key)),
        **common_properties(cluster, nodes),
        **secured_properties(cluster, str(layout.certificates_of(node.id))),
    }
    ports = ports_of(cluster, node, offset)
    own = OF_NODES if cluster.spec.is_secured else ()
    told = tuple(f"{listener.host}:{listener.port}" for listener in advertised if listener.name not in own)
    assert outer.host is not None, "filled in for every listener of a node"
    address = f"{first.host}:{first.port}"
    return LocalNode(
        node, outer.host, ports, address, _with_restart(format_properties(properties), cluster), metrics, told
    )


def _advertised(listener: Listener, node: Node) -> Listener:
    """The listener with the address that clients are told."""
    if listener.advertised is None:
        return listener
    host, _, port = (
        listener.advertised.replace("{id}", str(node.id)).replace("{port}", str(listener.port)).rpartition(":")
    )
    return listener.replaced({"host": host, "port": int(port)})


def _directories(layout: Layout, node: Node, metadata: str | None) -> dict[str, str]:
    """The log directories. The metadata log lies in the first, unless it began in another before."""
    names = [volume.name for volume in node.pool.storage.volumes]
    directories = {"log.dirs": ",".join(str(layout.data(node.id) / name) for name in names)}
    if metadata in names and metadata != names[0]:
        directories["metadata.log.dir"] = str(layout.data(node.id) / metadata)
    return directories


def _voter(cluster: KafkaCluster, node: Node, members: Members) -> str:
    listeners = listeners_of(cluster, node, members.offsets[node.id])
    (controller,) = [listener for listener in listeners if listener.name == CONTROLLER]
    return f"{node.id}@{controller.host}:{controller.port}"


def wanted_node(node: LocalNode) -> WantedNode:
    """A node as the reconcilers know it."""
    return WantedNode(node.id, fingerprint(node), node.node.rack, node.node.roles, node.volumes, node.node.pool.name)


def fingerprint(node: LocalNode) -> str:
    """A hash of the node's settings."""
    return sha256(node.properties.encode()).hexdigest()[:16]


def _url(listener: Listener) -> str:
    return f"{listener.name}://{listener.host}:{listener.port}"


def port_clashes(nodes: list[LocalNode]) -> list[str]:
    """Faults of the ports and of the advertised addresses, in words: a port out of range, or one used twice."""
    taken: dict[int, int] = {}
    words = list(_advertised_clashes(nodes))
    for node in nodes:
        for port in node.ports:
            if port > PORT_MAX:
                words.append(f"node {node.id} would listen on port {port}; choose lower ports")
            elif port in taken:
                words.append(
                    f"port {port} falls to node {taken[port]} and node {node.id}; leave more room between ports"
                )
            taken.setdefault(port, node.id)
    return words


def _advertised_clashes(nodes: list[LocalNode]) -> Iterator[str]:
    told: dict[str, int] = {}
    for node in nodes:
        for address in node.advertised:
            if not 0 < int(address.rpartition(":")[2]) <= PORT_MAX:
                yield f"node {node.id} would advertise {address}; write a port from 1 to {PORT_MAX}"
            elif told.setdefault(address, node.id) != node.id:
                both = f"node {told[address]} and node {node.id}"
                yield f"{both} would both advertise {address}; write {{id}} or {{port}} in it"
