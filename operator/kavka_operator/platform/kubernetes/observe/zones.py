"""The racks of nodes where a pool names a label of machines: each node is given a value, and keeps it. Pure.

A broker says its rack when it starts, and only a pod that has a machine could be asked for one. So it is the other way
round: the rack is drawn before the pod is made, kept on the node's volumes, and the pod runs only on machines that have
it. Racks are even from the first start on, and a volume is made where its node will be.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kavka_operator.api.pools import NodePool
from kavka_operator.api.stored_resources import part
from kavka_operator.platform.kubernetes.objects.names import ZONE, annotation, name_of
from kavka_operator.platform.kubernetes.observe.node_objects import Known, machine_of, template_of
from kavka_operator.platform.nodes import Node

KEEPS_AWAY = ("NoSchedule", "NoExecute")
"""The effects of taints that let no new pod come."""

OF_CONDITIONS = "node.kubernetes.io/"
"""What the keys of taints begin with that Kubernetes sets and takes away by the state of a machine: not ready,
cordoned, short of memory. A zone does not go with them."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine: its labels, and the taints that let no new pod come and stay."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, Any]] = ()


def machine_from(document: Mapping[str, Any]) -> Machine:
    """A machine as the API server has it."""
    taints = [
        taint
        for taint in part(document, "spec").get("taints") or ()
        if taint.get("effect") in KEEPS_AWAY and not str(taint.get("key")).startswith(OF_CONDITIONS)
    ]
    return Machine(name_of(document), part(document, "metadata").get("labels") or {}, taints)


def are_wanted(nodes: Iterable[Node], known: Known) -> bool:
    """Whether the rack of a node is still to be drawn, so that the machines have to be known."""
    return any(node.pool.topology_key is not None and _kept(node, known) is None for node in nodes)


def racked(nodes: Sequence[Node], known: Known, machines: Sequence[Machine]) -> list[Node]:
    """The nodes with the racks that the labels of machines give them.

    A node keeps what its volumes say. One that runs already has the rack of its machine; what was started before its
    pool named a label, and does not run, has none. Another gets the value that the fewest nodes of its pool have, of
    those whose machines take its pods, the first by name.
    """
    settled = {node.id: _settled(node, known, machines) for node in nodes}
    used = Counter((node.pool.name, settled[node.id]) for node in nodes)
    found = []
    for node in nodes:
        rack = settled[node.id]
        if rack is None and node.pool.topology_key is not None and not known.claims_of(node.id):
            open_to = sorted(values(node.pool, machines))
            rack = min(open_to, key=lambda value: used[node.pool.name, value], default=None)
            used[node.pool.name, rack] += 1
        found.append(node if node.pool.topology_key is None else replace(node, rack=rack))
    return found


def values(pool: NodePool, machines: Iterable[Machine]) -> set[str]:
    """The values of a pool's label on the machines that take its pods."""
    key = pool.topology_key or ""
    takers = [machine for machine in machines if _takes(machine, pool)]
    return {value for machine in takers if (value := machine.labels.get(key))}


def _settled(node: Node, known: Known, machines: Iterable[Machine]) -> str | None:
    """The rack that a node has already."""
    if node.pool.topology_key is None or (kept := _kept(node, known)) is not None:
        return node.rack if node.pool.topology_key is None else kept
    place = machine_of(known.pods.get(node.id, {}))
    return next((machine.labels.get(node.pool.topology_key) for machine in machines if machine.name == place), None)


def _kept(node: Node, known: Known) -> str | None:
    """The rack that the volumes of a node keep, or its template without any, for the label that its pool names now."""
    if node.pool.storage.is_ephemeral:
        asked = part(template_of(known, node.id), "spec").get("nodeSelector") or {}
        return asked.get(node.pool.topology_key)
    pairs = [annotation(claim, ZONE).partition("=") for claim in known.claims_of(node.id).values()]
    return next((value for key, _, value in pairs if key == node.pool.topology_key and value), None)


def _takes(machine: Machine, pool: NodePool) -> bool:
    """Whether a machine has the labels that the pods of a pool select, and no taint that they do not bear."""
    selected = pool.pod.node_selector.items() <= machine.labels.items()
    return selected and all(
        any(_bears(toleration, taint) for toleration in pool.pod.tolerations) for taint in machine.taints
    )


def _bears(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Whether a toleration bears a taint (Kubernetes, `Toleration.ToleratesTaint`)."""
    if toleration.get("effect") not in {None, "", taint.get("effect")}:
        return False
    if toleration.get("key") not in {None, "", taint.get("key")}:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool((toleration.get("value") or "") == (taint.get("value") or ""))
