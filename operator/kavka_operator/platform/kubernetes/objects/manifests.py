"""The objects of a cluster as the operator applies them, and whether an object is as it is applied. Pure.

All but volumes are owned by the KafkaCluster and go with it. Volumes stay, and with them the ids that were drawn: the
same resource applied again finds its cluster on them.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.pools import NODE_IDS_PER_POOL, Volume
from kavka_operator.api.quantity import spell
from kavka_operator.platform.kubernetes.objects.former_ports import Former
from kavka_operator.platform.kubernetes.objects.names import (
    AUDIT_KEY,
    CLUSTER,
    CLUSTER_ID,
    DIRECTORY_ID,
    FIRST_NODE_ID,
    HOLDS_METADATA,
    INITIAL_CONTROLLERS,
    MANAGED_BY,
    OPERATOR,
    ROLE,
    VOLUME,
    YES,
    ZONE,
    Document,
    audit_key_name,
    bootstrap_service,
    claim_name,
    label,
    labels_of,
    node_labels,
    node_name,
    nodes_service,
    selector_of,
    uid_of,
)
from kavka_operator.platform.kubernetes.objects.pod_template import port_name
from kavka_operator.platform.kubernetes.objects.settings import Layout, controller_port
from kavka_operator.platform.nodes import Node
from kavka_operator.platform.security import among_nodes, client_listeners

EVERY_NODE_IS_LEVEL = Former()
HISTORY = 1
"""Former templates that a StatefulSet keeps: nobody goes back by them."""


def stateful_set(layout: Layout, template: Mapping[str, Any]) -> Document:
    """The StatefulSet of a node, which makes its one pod again whenever it is gone, as it was."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            **owned(layout.cluster, node_name(layout.name, layout.node)),
            "labels": node_labels(layout.name, layout.node),
        },
        "spec": {
            "replicas": 1,
            "serviceName": nodes_service(layout.name),
            "selector": {"matchLabels": selector_of(layout.name, layout.node.id)},
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "revisionHistoryLimit": HISTORY,
            "template": dict(template),
        },
    }


def claim(layout: Layout, volume: Volume, kept: Mapping[str, str], size: int) -> Document:
    """The claim of a volume. `kept` are the annotations with what was drawn for it."""
    labels = {**node_labels(layout.name, layout.node), VOLUME: volume.name}
    first = layout.node.id - layout.node.id % NODE_IDS_PER_POOL
    held = {HOLDS_METADATA: YES} if volume.name == layout.metadata else {}
    asked = {"storageClassName": volume.storage_class_name} if volume.storage_class_name else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim_name(layout.name, layout.node, volume.name),
            "namespace": layout.cluster.metadata.namespace,
            "labels": labels,
            "annotations": {**kept, **held, **zone_of(layout.node), FIRST_NODE_ID: str(first)},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": spell(size)}},
            **asked,
        },
    }


def audit_key(cluster: KafkaCluster, key: str) -> Document:
    """The Secret with the key that signs the audit trail. It stays with the volumes, whose trail it has signed."""
    name = cluster.metadata.name
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": audit_key_name(name),
            "namespace": cluster.metadata.namespace,
            "labels": labels_of(name),
        },
        "type": "Opaque",
        "immutable": True,
        "stringData": {AUDIT_KEY: key},
    }


def zone_of(node: Node) -> dict[str, str]:
    """The annotation of a claim that keeps the rack of a node, where that was drawn from the labels of machines."""
    key = node.pool.topology_key
    return {ZONE: f"{key}={node.rack}"} if key and node.rack else {}


def kept_of(cluster_id: str, directory_id: str, initial: str) -> dict[str, str]:
    """The annotations of a claim that keep what was drawn."""
    return {CLUSTER_ID: cluster_id, DIRECTORY_ID: directory_id, **(formed(initial) if initial else {})}


def formed(initial: str) -> dict[str, str]:
    """The annotation of a claim that names the first controllers."""
    return {INITIAL_CONTROLLERS: initial}


def shared(cluster: KafkaCluster, former: Former = EVERY_NODE_IS_LEVEL) -> list[Document]:
    """Documents that a cluster has once: host names of its nodes, a bootstrap address, a guard of its controllers.

    They let in what is wanted, and what the nodes have that are not level yet (`former`).
    """
    name, served = cluster.metadata.name, _ports_of_brokers(cluster, former)
    among_controllers = _port("controller", controller_port(cluster))
    taken = {port["port"] for port in [*served, among_controllers]}
    before = [_port(f"former-{port}", port) for port in former.controllers if port not in taken]
    host_names = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {CLUSTER: name},
        "ports": [*served, among_controllers, *before],
    }
    bootstrap = {
        "type": "ClusterIP",
        "selector": {CLUSTER: name, f"{ROLE}broker": YES},
        "ports": served,
    }
    return [
        service(cluster, nodes_service(name), host_names),
        service(cluster, bootstrap_service(name), bootstrap),
        network_policy(cluster, former),
    ]


def _ports_of_brokers(cluster: KafkaCluster, former: Former) -> list[Document]:
    """The ports at which brokers are begun with: the first, and of a secured cluster each, as they differ in kind.

    While some brokers have another port for a listener, the former port is served too, and both lead to the listener by
    its name: to whichever port a pod has for it.
    """
    first, *others = client_listeners(cluster)
    wanted = [("kafka", first)]
    if cluster.spec.is_secured:
        wanted += [*((f"kafka-{listener.port}", listener) for listener in others), ("nodes", among_nodes(cluster))]
    now = {listener.port for _, listener in wanted}
    listeners: dict[int, set[str]] = {}
    for name, port in former.clients:
        listeners.setdefault(port, set()).add(name)
    begun_at = former.clients if cluster.spec.is_secured else former.first
    moved = sorted({port for _, port in begun_at if port not in now})

    def target(port: int, names: set[str]) -> str | int:
        return port_name(*names) if moved and len(names) == 1 else port

    return [
        *(
            _port(key, found.port, target(found.port, {found.name, *listeners.get(found.port, ())}))
            for key, found in wanted
        ),
        *(_port(f"former-{port}", port, target(port, listeners[port])) for port in moved),
    ]


def secret(cluster: KafkaCluster, name: str, texts: Mapping[str, str], labels: Mapping[str, str]) -> Document:
    """A Secret of a cluster."""
    metadata = {**owned(cluster, name), "labels": {**labels_of(cluster.metadata.name), **labels}}
    data = {key: b64encode(text.encode()).decode() for key, text in sorted(texts.items())}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}


def network_policy(cluster: KafkaCluster, former: Former = EVERY_NODE_IS_LEVEL) -> Document:
    """Clients and scrapers may come from anywhere; to the controllers' port only nodes of the cluster.

    The port of nodes in a secured cluster is open too: the operator comes by it, from wherever it is, and a certificate
    is asked for there.
    """
    ports = [listener.port for listener in client_listeners(cluster)]
    ports += [among_nodes(cluster).port] if cluster.spec.is_secured else []
    ports += [cluster.spec.metrics.port] if cluster.spec.metrics.enabled else []
    ports += [port for port in former.open if port not in ports]
    own = [controller_port(cluster)]
    own += [port for port in former.controllers if port not in own]
    name = cluster.metadata.name
    inside = [{"podSelector": {"matchLabels": {CLUSTER: name}}}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {**owned(cluster, nodes_service(name)), "labels": labels_of(name)},
        "spec": {
            "podSelector": {"matchLabels": {CLUSTER: name}},
            "policyTypes": ["Ingress"],
            "ingress": [
                {"ports": [_open(port) for port in ports]},
                {"from": inside, "ports": [_open(port) for port in own]},
            ],
        },
    }


def owner_of(document: Mapping[str, Any]) -> str | None:
    """The uid of the controller that owns an object; None where none does."""
    owners = document.get("metadata", {}).get("ownerReferences") or ()
    return next((str(owner.get("uid")) for owner in owners if owner.get("controller")), None)


def is_ours(document: Mapping[str, Any], cluster: KafkaCluster) -> bool:
    """Whether an object is the cluster's: it has its labels, and no other owner. A claim has no owner."""
    marks = (label(document, MANAGED_BY), label(document, CLUSTER))
    return marks == (OPERATOR, cluster.metadata.name) and owner_of(document) in {None, cluster.metadata.uid}


def covers(seen: Any, wanted: Any) -> bool:
    """Whether an object has all that is wanted of it, whatever it has besides."""
    if isinstance(wanted, Mapping):
        return isinstance(seen, Mapping) and all(covers(seen.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        is_list = isinstance(seen, Sequence) and not isinstance(seen, str) and len(seen) == len(wanted)
        return is_list and all(covers(*pair) for pair in zip(seen, wanted, strict=True))
    return bool(seen == wanted)


def with_uid(manifest: Document, seen: Mapping[str, Any] | None) -> Document:
    """The manifest for the very object that was seen: not for another that has its name by now."""
    if seen is None:
        return manifest
    return {**manifest, "metadata": {**manifest["metadata"], "uid": uid_of(seen)}}


def owned(cluster: KafkaCluster, name: str) -> Document:
    """The metadata of an object that goes with its KafkaCluster."""
    owner = {
        "apiVersion": cluster.api_version,
        "kind": cluster.kind,
        "name": cluster.metadata.name,
        "uid": cluster.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {"name": name, "namespace": cluster.metadata.namespace, "ownerReferences": [owner]}


def service(cluster: KafkaCluster, name: str, spec: Document) -> Document:
    """A Service of a cluster."""
    metadata = {**owned(cluster, name), "labels": labels_of(cluster.metadata.name)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _port(name: str, port: int, target: str | int | None = None) -> Document:
    return {"name": name, "port": port, "targetPort": port if target is None else target, "protocol": "TCP"}


def _open(port: int) -> Document:
    return {"port": port, "protocol": "TCP"}
