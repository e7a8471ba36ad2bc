"""`server.properties` of a node that is a pod, and which part of it the resource asks for.

Only that part is in the fingerprint. How this version of the operator writes the rest (where it listens, where volumes
are mounted, whom it asks for the quorum) may change with the next version without a restart of anything: a pod gets the
new rendering when it is restarted for another reason.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from kavka_broker.core.config.properties import format_properties, parse_properties
from kavka_operator.api.cluster import KafkaCluster, Listener
from kavka_operator.api.security import CONTROLLER, CONTROLLER_PORT_STEP
from kavka_operator.platform.kubernetes.objects.names import AUDIT_KEY, host_of
from kavka_operator.platform.kubernetes.objects.quantities import KINDS, plain
from kavka_operator.platform.nodes import Node, audit_properties, common_properties
from kavka_operator.platform.security import among_nodes, client_listeners, protocols, secured_properties
from kavka_operator.reconcile.rollout.restart import RESTART, restart_mark

DATA = "/var/lib/kavka"
AUDIT_DIRECTORY = "/etc/kavka-audit"
CERTIFICATES = "/etc/kavka-certificates"
ADVERTISED = "advertised.listeners"
RENDERED = (
    ADVERTISED,
    "controller.quorum.bootstrap.servers",
    "kavka.admin.listener",
    "listeners",
    "log.dirs",
    "metadata.log.dir",
)
"""Settings that the operator writes in its own way; what they follow from is told by the fingerprint alone."""


HOST_IP = "$(KAVKA_HOST_IP)"
"""Stands for the address of the machine that a pod is on; Kubernetes fills it into arguments when the pod starts."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The address at which clients outside reach a broker on a listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Layout:
    """A node among all nodes of its cluster.

    `metadata` is the volume that holds the metadata log; `outside` the addresses that its Services got, by listener.
    `controllers_at` are the addresses of controllers that are not where the resource wants them yet.
    """

    cluster: KafkaCluster
    nodes: Sequence[Node]
    node: Node
    metadata: str
    outside: Mapping[str, Outside] = field(default_factory=dict)
    controllers_at: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the cluster."""
        return self.cluster.metadata.name

    @property
    def volumes(self) -> tuple[str, ...]:
        """The names of the node's volumes."""
        return tuple(volume.name for volume in self.node.pool.storage.volumes)

    @property
    def is_ephemeral(self) -> bool:
        """Whether the node's volumes end with its pod."""
        return self.node.pool.storage.is_ephemeral

    @property
    def claimed(self) -> tuple[str, ...]:
        """The names of the volumes that have PersistentVolumeClaims: all, or none."""
        return () if self.is_ephemeral else self.volumes

    @property
    def host(self) -> str:
        """The host name of the node."""
        return host_of(self.name, self.cluster.metadata.namespace, self.node)

    @property
    def clients(self) -> list[Listener]:
        """The listeners for clients, if the node is a broker."""
        return client_listeners(self.cluster) if self.node.is_broker else []

    @property
    def served(self) -> list[Listener]:
        """The listeners of a broker: those for clients, and that of nodes in a secured cluster."""
        own = [among_nodes(self.cluster)] if self.cluster.spec.is_secured and self.node.is_broker else []
        return [*self.clients, *own]

    @property
    def address(self) -> str:
        """The address at which clients reach the node, or controllers each other."""
        inside = [listener for listener in self.clients if listener.service is None] or self.clients
        return told(self, inside[0]) if inside else f"{self.host}:{controller_port(self.cluster)}"

    @property
    def bootstrap(self) -> str:
        """The address at which the operator asks the node: the listener that nodes use among themselves."""
        return f"{self.host}:{among_nodes(self.cluster).port}"


def exposed(cluster: KafkaCluster) -> list[Listener]:
    """The listeners that clients outside reach by Services."""
    return [listener for listener in client_listeners(cluster) if listener.service is not None]


def controller_port(cluster: KafkaCluster) -> int:
    """The port that controllers use among themselves."""
    declared = [listener.port for listener in cluster.spec.listeners if listener.name == CONTROLLER]
    return declared[0] if declared else client_listeners(cluster)[0].port + CONTROLLER_PORT_STEP


def told(layout: Layout, listener: Listener) -> str:
    """The address of a node's listener, as clients are told it."""
    place = layout.outside.get(listener.name)
    if listener.advertised is None:
        return str(place or f"{layout.host}:{listener.port}")
    found = listener.advertised.replace("{id}", str(layout.node.id)).replace("{port}", str(listener.port))
    return found if place is None else found.replace("{nodePort}", str(place.port))


def advertised(layout: Layout) -> list[str]:
    """Addresses of a node's listeners, as clients and the other controllers are told them."""
    urls = [f"{listener.name}://{told(layout, listener)}" for listener in layout.served]
    port = controller_port(layout.cluster)
    return [*urls, *([f"{CONTROLLER}://{layout.host}:{port}"] if layout.node.is_controller else [])]


def advertised_in(settings: str) -> dict[str, Outside]:
    """Addresses in a text of server.properties, by the names of listeners."""
    urls = parse_properties(settings).get(ADVERTISED, "").split(",")
    pairs = [(url.partition("://")[0], url.partition("://")[2].rpartition(":")) for url in urls]
    return {name: Outside(host, int(port)) for name, (host, _, port) in pairs if host and port.isdecimal()}


def asked(layout: Layout) -> dict[str, str]:
    """The settings of a node that follow from the resource, by Kafka's names."""
    cluster, node = layout.cluster, layout.node
    return {
        "process.roles": ",".join(sorted(node.roles)),
        "node.id": str(node.id),
        **({"broker.rack": node.rack} if node.rack else {}),
        # A controller alone asks brokers only to keep its audit trail.
        **(
            {"inter.broker.listener.name": among_nodes(cluster).name}
            if node.is_broker or cluster.spec.is_audited
            else {}
        ),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols(cluster).items()
        ),
        "controller.listener.names": CONTROLLER,
        **audit_properties(cluster, f"{AUDIT_DIRECTORY}/{AUDIT_KEY}"),
        **common_properties(cluster, layout.nodes),
        **secured_properties(cluster, CERTIFICATES),
    }


def properties(layout: Layout) -> str:
    """The text of server.properties."""
    cluster = layout.cluster
    listeners = [(listener.name, listener.port) for listener in layout.served]
    if layout.node.is_controller:
        listeners.append((CONTROLLER, controller_port(cluster)))
    namespace = cluster.metadata.namespace
    controllers = [host_of(layout.name, namespace, node) for node in layout.nodes if node.is_controller]
    metrics = {"kavka.admin.listener": f":{cluster.spec.metrics.port}"} if cluster.spec.metrics.enabled else {}
    return format_properties(
        {
            **asked(layout),
            "listeners": ",".join(f"{name}://:{port}" for name, port in listeners),
            ADVERTISED: ",".join(url for url in advertised(layout) if HOST_IP not in url),
            "controller.quorum.bootstrap.servers": ",".join(
                [*(f"{host}:{controller_port(cluster)}" for host in controllers), *layout.controllers_at]
            ),
            "log.dirs": ",".join(directory(volume) for volume in layout.volumes),
            "metadata.log.dir": directory(layout.metadata),
            **metrics,
        }
    )


def directory(volume: str) -> str:
    """The log directory on a volume."""
    return f"{DATA}/{volume}"


def fingerprint(layout: Layout) -> str:
    """A hash of what the resource asks for of the node's process and pod, however this version renders it."""
    return _hashed(layout, plain(layout.node.pool.resources))


def fingerprint_by_spelling(layout: Layout) -> str:
    """The hash that versions took which knew an amount by its spelling; their nodes are not restarted for it."""
    return _hashed(layout, layout.node.pool.resources)


def besides_resources(layout: Layout) -> str:
    """A hash of all that the fingerprint tells, except how much processor and memory the broker has."""
    return _hashed(layout, {name: asked for name, asked in layout.node.pool.resources.items() if name not in KINDS})


def _hashed(layout: Layout, resources: Mapping[str, Any]) -> str:
    spec = layout.cluster.spec
    ports = [controller_port(layout.cluster), spec.metrics.port if spec.metrics.enabled else 0]
    told_of = [(listener.name, listener.port, listener.advertised) for listener in layout.clients]
    asks: list[Any] = [asked(layout), ports, told_of, sorted(layout.volumes), spec.image, resources]
    asks += [among_nodes(layout.cluster).port] if spec.is_secured else []
    asks += [outside] if (outside := of_services(layout)) else []
    asks += [asked_of_pod] if (asked_of_pod := of_pod(layout)) else []  # so that without any the hash stays as it was
    asks += [{RESTART: mark}] if (mark := restart_mark(layout.cluster)) else []
    return sha256(json.dumps(asks, sort_keys=True).encode()).hexdigest()[:16]


def of_services(layout: Layout) -> list[tuple[str, str]]:
    """Addresses of a node for clients outside, by listener. A broker says them when it starts."""
    return [(listener.name, told(layout, listener)) for listener in layout.clients if listener.service is not None]


def of_pod(layout: Layout) -> dict[str, Any]:
    """Fields that the resource asks of the node's pod beside the broker; empty where it asks for nothing."""
    pool = layout.node.pool
    zone = {"topologyKey": pool.topology_key} if pool.topology_key and layout.node.rack else {}
    marks = {
        name: value for name, value in (("labels", pool.pod.labels), ("annotations", pool.pod.annotations)) if value
    }
    return {**zone, **marks, **pool.pod.asked()}


def changed(before: str, now: str) -> tuple[str, ...]:
    """The settings in which two texts differ, without those that only this operator writes."""
    old, new = parse_properties(before), parse_properties(now)
    return tuple(sorted(key for key in old.keys() | new.keys() if key not in RENDERED and old.get(key) != new.get(key)))
