"""What the objects of a cluster are called, and the labels and annotations by which they are found again.

Labels find objects, annotations keep what was drawn once. Both stand in objects that outlive this version: none of them
may ever mean anything else.
"""

from collections.abc import Mapping
from typing import Any

from kavka_operator.api.stored_resources import part
from kavka_operator.platform.nodes import Node

Document = dict[str, Any]

CLUSTER = "kavka.dev/cluster"
POOL = "kavka.dev/pool"
NODE_ID = "kavka.dev/node-id"
VOLUME = "kavka.dev/volume"
LISTENER = "kavka.dev/listener"
ROLE = "kavka.dev/role-"  # and the role itself: a node may have two
AUDIT_OF = "kavka.dev/audit-of"  # on pods that answer from a cluster's trail, and that are none of its nodes
ENGINE = "kavka.dev/audit-engine"
AUDIT_KEY = "audit.key"  # in the Secret, and the name of the file
YES = "true"
GATE = "kavka.dev/empty-volumes"
"""The scheduling gate of a pod whose volumes end with it: no machine takes it before the operator lifts the gate."""

FINGERPRINT = "kavka.dev/fingerprint"
ASKED = "kavka.dev/asked"
BESIDES_RESOURCES = "kavka.dev/besides-resources"
SETTINGS = "kavka.dev/settings"
CLUSTER_ID = "kavka.dev/cluster-id"
DIRECTORY_ID = "kavka.dev/directory-id"
FORMATTED = "kavka.dev/formatted"
FIRST_NODE_ID = "kavka.dev/first-node-id"
HOLDS_METADATA = "kavka.dev/holds-metadata"
INITIAL_CONTROLLERS = "kavka.dev/initial-controllers"
ZONE = "kavka.dev/zone"

MANAGED_BY = "app.kubernetes.io/managed-by"
COMPONENT = "app.kubernetes.io/component"
OPERATOR = "kavka-operator"


def labels_of(cluster: str) -> dict[str, str]:
    """The labels of every object of a cluster."""
    return {
        "app.kubernetes.io/name": "kavka",
        "app.kubernetes.io/instance": cluster,
        MANAGED_BY: OPERATOR,
        CLUSTER: cluster,
    }


def node_labels(cluster: str, node: Node) -> dict[str, str]:
    """The labels of the objects of a node."""
    roles = {f"{ROLE}{role}": YES for role in sorted(node.roles)}
    return {**labels_of(cluster), POOL: node.pool.name, NODE_ID: str(node.id), **roles}


def selector_of(cluster: str, number: int) -> dict[str, str]:
    """The labels that find the pod of a node. A StatefulSet never changes them."""
    return {CLUSTER: cluster, NODE_ID: str(number)}


def node_name(cluster: str, node: Node) -> str:
    """The name of a node's StatefulSet."""
    return f"{cluster}-{node.pool.name}-{node.id}"


def pod_name(stateful_set: str) -> str:
    """The name of the one pod of a StatefulSet."""
    return f"{stateful_set}-0"


def claim_name(cluster: str, node: Node, volume: str) -> str:
    """The name of a volume's PersistentVolumeClaim."""
    return f"{volume}-{node_name(cluster, node)}"


def nodes_service(cluster: str) -> str:
    """The name of the Service that gives every node its host name, ready or not."""
    return f"{cluster}-nodes"


def bootstrap_service(cluster: str) -> str:
    """The name of the Service where clients begin: brokers that are ready."""
    return f"{cluster}-bootstrap"


def audit_name(cluster: str) -> str:
    """The name of the objects by which the audit trail of a cluster is asked."""
    return f"{cluster}-audit"


def audit_key_name(cluster: str) -> str:
    """The name of the Secret with the key that signs the audit trail."""
    return f"{cluster}-audit-key"


def certificates_secret(stateful_set: str) -> str:
    """The name of the Secret with the certificates of a node."""
    return f"{stateful_set}-certificates"


def place_secret(cluster: str, place: str) -> str:
    """The name of the Secret with the authority of a cluster, with who is trusted (`ca`), or the operator's own."""
    return f"{cluster}-{place}"


def host_of(cluster: str, namespace: str, node: Node) -> str:
    """The host name of a node, as it is known in all namespaces."""
    return f"{pod_name(node_name(cluster, node))}.{nodes_service(cluster)}.{namespace}.svc"


def label(document: Mapping[str, Any], name: str) -> str:
    """A label of an object; empty where it has none."""
    return str((part(document, "metadata").get("labels") or {}).get(name, ""))


def annotation(document: Mapping[str, Any], name: str) -> str:
    """An annotation of an object; empty where it has none."""
    return str((part(document, "metadata").get("annotations") or {}).get(name, ""))


def name_of(document: Mapping[str, Any]) -> str:
    """The name of an object."""
    return str(part(document, "metadata").get("name"))


def uid_of(document: Mapping[str, Any]) -> str:
    """The uid of an object."""
    return str(part(document, "metadata").get("uid"))


def number_of(document: Mapping[str, Any]) -> int | None:
    """The id of the node that an object belongs to; None where its label is none."""
    text = label(document, NODE_ID)
    return int(text) if text.isdecimal() else None
