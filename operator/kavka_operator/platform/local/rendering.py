"""`server.properties` of a node on this machine. Pure.

Ports count up from those in the resource by the node's position; the controllers' own port lies `CONTROLLER_PORT_STEP`
above the first listener's unless the resource lists it.
"""

from dataclasses import dataclass

from kavka_broker.core.config.properties import format_properties
from kavka_operator.api.cluster import KafkaCluster, Listener
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.nodes import CONTROLLER, Node, common_properties, nodes_of

CONTROLLER_PORT_STEP = 1000
PORT_MAX = 65_535


@dataclass(frozen=True, slots=True)
class LocalNode:
    """A node, where it listens, and the text of its settings."""

    node: Node
    host: str
    ports: tuple[int, ...]
    address: str
    properties: str
    metrics: str | None

    @property
    def id(self) -> int:
        return self.node.id


def local_nodes(cluster: KafkaCluster, layout: Layout) -> list[LocalNode]:
    """Every node of the cluster, as it runs on this machine."""
    nodes = nodes_of(cluster)
    voters = ",".join(_voter(cluster, node) for node in nodes if "controller" in node.roles)
    return [_local(cluster, layout, node, nodes, voters) for node in nodes]


def _local(cluster: KafkaCluster, layout: Layout, node: Node, nodes: list[Node], voters: str) -> LocalNode:
    listeners = _listeners(cluster, node)
    clients = [listener for listener in listeners if listener.name != CONTROLLER]
    metrics = cluster.spec.metrics
    admin_port = metrics.port + node.position
    first = clients[0] if clients else listeners[0]
    protocols = {each.name: each.protocol for each in cluster.spec.listeners} | {CONTROLLER: "PLAINTEXT"}
    directories = [str(layout.data(node.id) / volume.name) for volume in node.pool.storage.volumes]
    properties = {
        "process.roles": ",".join(node.roles),
        "node.id": str(node.id),
        **({"broker.rack": node.rack} if node.rack else {}),
        "listeners": ",".join(map(_url, listeners)),
        **({"advertised.listeners": ",".join(map(_url, clients))} if clients else {}),
        **({"inter.broker.listener.name": clients[0].name} if clients else {}),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "controller.listener.names": CONTROLLER,
        "controller.quorum.voters": voters,
        "log.dirs": ",".join(directories),
        **({"kavka.admin.listener": f"{first.host}:{admin_port}"} if metrics.enabled else {}),
        **common_properties(cluster, nodes),
    }
    ports = (*(listener.port for listener in listeners), *((admin_port,) if metrics.enabled else ()))
    metrics_address = f"{first.host}:{admin_port}" if metrics.enabled else None
    address = f"{first.host}:{first.port}"
    return LocalNode(node, first.host, ports, address, format_properties(properties), metrics_address)


def _listeners(cluster: KafkaCluster, node: Node) -> list[Listener]:
    """The listeners that this node opens, with its own ports."""
    declared = {listener.name: listener for listener in cluster.spec.listeners}
    clients = [each for name, each in declared.items() if name != CONTROLLER]
    controller = declared.get(CONTROLLER) or clients[0].model_copy(
        update={"name": CONTROLLER, "port": clients[0].port + CONTROLLER_PORT_STEP}
    )
    wanted = (clients if "broker" in node.roles else []) + ([controller] if "controller" in node.roles else [])
    return [each.model_copy(update={"port": each.port + node.position}) for each in wanted]


def _voter(cluster: KafkaCluster, node: Node) -> str:
    (controller,) = [each for each in _listeners(cluster, node) if each.name == CONTROLLER]
    return f"{node.id}@{controller.host}:{controller.port}"


def _url(listener: Listener) -> str:
    return f"{listener.name}://{listener.host}:{listener.port}"


def port_clashes(nodes: list[LocalNode]) -> list[str]:
    """What is wrong with the ports, in words; each may be used once and must be one."""
    taken: dict[int, int] = {}
    words = []
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
