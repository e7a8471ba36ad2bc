"""The Services by which clients outside reach the brokers, and the addresses that these got. Pure.

A client talks to each broker by itself, so each has a Service of its own. A broker says its address when it starts:
so the Services are made first, and a node is started when they have what it will say. A port of machines is known at
once, and which machine it is the pod learns from Kubernetes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kavka_operator.api.cluster import KafkaCluster, Listener
from kavka_operator.api.stored_resources import part
from kavka_operator.platform.kubernetes.objects.manifests import service
from kavka_operator.platform.kubernetes.objects.names import (
    CLUSTER,
    LISTENER,
    NODE_ID,
    ROLE,
    YES,
    Document,
    bootstrap_service,
    label,
    name_of,
    node_name,
    selector_of,
)
from kavka_operator.platform.kubernetes.objects.settings import HOST_IP, Layout, Outside, advertised_in, exposed, told
from kavka_operator.platform.kubernetes.observe import node_objects
from kavka_operator.platform.kubernetes.observe.node_objects import Known, settings_of
from kavka_operator.platform.nodes import Node
from kavka_operator.platform.security import client_listeners

NODE_PORT_FIELD = "{nodePort}"
DOMAIN = "cluster.local"
"""The usual domain of a Kubernetes, by which some clients spell out a name."""


def services(cluster: KafkaCluster, nodes: Iterable[Node]) -> Iterator[Document]:
    """The Services of all listeners that have some: one for each broker, and one to begin with."""
    brokers = [node for node in nodes if node.is_broker]
    name = cluster.metadata.name
    for listener in exposed(cluster):
        for node in brokers:
            spec = {"selector": selector_of(name, node.id), "publishNotReadyAddresses": True}
            made = _service(cluster, _name(node_name(name, node), listener), listener, spec, str(node.id))
            made["metadata"]["labels"][NODE_ID] = str(node.id)
            yield made
        any_broker = {"selector": {CLUSTER: name, f"{ROLE}broker": YES}, "externalTrafficPolicy": "Cluster"}
        yield _service(cluster, _name(bootstrap_service(name), listener), listener, any_broker, "bootstrap")


def stale(known: Known, wanted: Sequence[Document], layouts: Mapping[int, Layout]) -> list[Document]:
    """The Services of listeners that nobody wants any more. `layouts` are the nodes that are wanted, by id.

    A node keeps its own until it has gone, or was restarted with other listeners: clients still come by them. The
    Service to begin with goes with the last of those.
    """
    names = {name_of(document) for document in wanted}
    behind = {str(number) for number, layout in layouts.items() if not node_objects.is_level(known, layout)}
    started = {str(number) for number in known.sets}
    kept = started & (behind | (started - {str(number) for number in layouts}))
    of_listeners = (found for (kind, _), found in known.shared.items() if kind == "Service" and label(found, LISTENER))
    return [
        found
        for found in of_listeners
        if name_of(found) not in names and not kept & ({label(found, NODE_ID)} if label(found, NODE_ID) else behind)
    ]


def outside(cluster: KafkaCluster, known: Known, node: Node) -> dict[str, Outside]:
    """Addresses at which clients outside reach a node, by listener, as far as they are known.

    A load balancer that has lost its address leaves a node with what it says already.
    """
    found = {}
    said = advertised_in(settings_of(known, node.id)) if node.is_broker else {}
    for listener in exposed(cluster) if node.is_broker else ():
        document = known.shared.get(("Service", _name(node_name(cluster.metadata.name, node), listener)), {})
        if (place := _place(listener, document) or said.get(listener.name)) is not None:
            found[listener.name] = place
    return found


def missing(layout: Layout) -> list[str]:
    """The Services that have no address yet, of those whose address the node has to say."""
    return [
        _name(node_name(layout.name, layout.node), listener)
        for listener in layout.clients
        if listener.service is not None
        and listener.name not in layout.outside
        and (listener.advertised is None or NODE_PORT_FIELD in listener.advertised)
    ]


def begins(cluster: KafkaCluster, layouts: Iterable[Layout], known: Known) -> dict[str, str]:
    """Bootstrap addresses outside, by listener: at the load balancer, or at brokers that have a machine.

    Of a secured cluster those inside are told too, as its listeners do not all speak the same.
    """
    inside = client_listeners(cluster) if cluster.spec.is_secured else []
    found = {listener.name: inside_address(cluster, listener) for listener in inside if listener.service is None}
    for listener in exposed(cluster):
        document = known.shared.get(("Service", _name(bootstrap_service(cluster.metadata.name), listener)), {})
        balanced = _place(listener, document) if _type(listener) == "LoadBalancer" else None
        brokers = [place for layout in layouts if (place := _begins_at(layout, listener, known))]
        if places := [str(balanced)] if balanced is not None else brokers:
            found[listener.name] = ",".join(places)
    return found


def inside_address(cluster: KafkaCluster, listener: Listener) -> str:
    """The address of a listener at the bootstrap Service, which stands for all brokers."""
    return f"{bootstrap_service(cluster.metadata.name)}.{cluster.metadata.namespace}.svc:{listener.port}"


def begin(cluster: KafkaCluster) -> str:
    """The address with which clients inside begin; empty where the first listener leads them outside."""
    first = client_listeners(cluster)[0]
    return inside_address(cluster, first) if first.service is None and first.advertised is None else ""


def hosts(layout: Layout, known: Known) -> frozenset[str]:
    """The hosts at which a node is reached: by other nodes, by clients inside, and by clients outside."""
    cluster = layout.cluster
    begin = bootstrap_service(layout.name)
    inside = [layout.host, f"{begin}.{cluster.metadata.namespace}.svc"]
    machine = str(part(known.pods.get(layout.node.id, {}), "status").get("hostIP") or "")
    outer = [told(layout, listener).rpartition(":")[0].strip("[]") for listener in layout.clients]
    for listener in exposed(cluster) if layout.node.is_broker else ():
        document = known.shared.get(("Service", _name(begin, listener)), {})
        balanced = _place(listener, document) if _type(listener) == "LoadBalancer" else None
        outer += [balanced.host.strip("[]")] if balanced is not None else []
    met = {machine if host == HOST_IP else host for host in outer}
    names = {*inside, *(f"{host}.{DOMAIN}" for host in inside), begin, f"{begin}.{cluster.metadata.namespace}"}
    return frozenset({*names, *met} - {""})


def _begins_at(layout: Layout, listener: Listener, known: Known) -> str:
    """The address of a broker for clients outside; empty while it has no machine."""
    if not layout.node.is_broker or missing(layout):
        return ""
    machine = str(part(known.pods.get(layout.node.id, {}), "status").get("hostIP") or "")
    words = told(layout, listener)
    return words if HOST_IP not in words else words.replace(HOST_IP, machine) if machine else ""


def _place(listener: Listener, document: Mapping[str, Any]) -> Outside | None:
    """The address that a Service got; None before it has one."""
    if _type(listener) == "NodePort":
        ports = part(document, "spec").get("ports") or ()
        return next((Outside(HOST_IP, int(port["nodePort"])) for port in ports if port.get("nodePort")), None)
    entries = part(part(document, "status"), "loadBalancer").get("ingress") or ()
    hosts = (str(entry.get("hostname") or entry.get("ip") or "") for entry in entries)
    host = next((host for host in hosts if host), "")
    return Outside(f"[{host}]" if ":" in host else host, listener.port) if host else None


def _type(listener: Listener) -> str:
    return listener.service.type if listener.service is not None else ""


def _name(owner: str, listener: Listener) -> str:
    """The name of a Service: its port tells a listener from others, and is short."""
    return f"{owner}-{listener.port}"


def _service(cluster: KafkaCluster, name: str, listener: Listener, more: Document, number: str) -> Document:
    asked = listener.service
    assert asked is not None, "only listeners with a service are exposed"
    balancing = {
        "loadBalancerClass": asked.load_balancer_class,
        "loadBalancerSourceRanges": list(asked.load_balancer_source_ranges),
    }
    spec = {
        "type": asked.type,
        "externalTrafficPolicy": asked.external_traffic_policy,
        "ports": [{"name": "kafka", "port": listener.port, "targetPort": listener.port, "protocol": "TCP"}],
        **{key: value for key, value in balancing.items() if value},
        **more,
    }
    made = service(cluster, name, spec)
    annotations = {key: value.replace("{id}", number) for key, value in asked.annotations.items()}
    labels = {**made["metadata"]["labels"], LISTENER: listener.name.lower()}
    marks = {"labels": labels, **({"annotations": annotations} if annotations else {})}
    return {**made, "metadata": {**made["metadata"], **marks}}
