"""What a resource itself asks of a node that is a pod, apart from what this version of the operator makes of it. Pure.

A node whose settings are to be others, and of which the resource asks the same as when it was started, is to have them
only because the operator is another version. Such a node is not restarted before a person approves it.

A mark outlives the version that wrote it. So a field that later versions add to what is asked may only count where it
is set; and a setting that the node was started with counts also where brokers take it while they run by now.
"""

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any

from kavka_broker.core.config.properties import parse_properties
from kavka_operator.api.settings import dynamic
from kavka_operator.platform.kubernetes.objects.names import ASKED, SETTINGS, annotation
from kavka_operator.platform.kubernetes.objects.quantities import plain
from kavka_operator.platform.kubernetes.objects.settings import Layout, of_pod, of_services
from kavka_operator.platform.nodes import REPLICAS_MAX
from kavka_operator.reconcile.rollout.restart import restart_mark

NONE_YET: Collection[str] = frozenset()


def mark_of(layout: Layout, started_with: Collection[str] = NONE_YET) -> str:
    """A hash of what the resource asks of a node. `started_with` are the settings that it runs with, by name."""
    return hash_layout(layout, started_with, plain(layout.node.pool.resources))


def hash_layout(layout: Layout, started_with: Collection[str], resources: Mapping[str, Any]) -> str:
    spec, node = layout.cluster.spec, layout.node
    brokers = sum(other.is_broker for other in layout.nodes)
    asks = {
        "id": str(node.id),
        "roles": sorted(node.roles),
        "rack": node.rack,
        "brokers": min(brokers, REPLICAS_MAX),  # with more of them no default becomes another
        "config": {name: value for name, value in spec.config.items() if not dynamic(name) or name in started_with},
        "listeners": [(listener.name, listener.port, listener.protocol) for listener in spec.listeners],
        "advertised": [(found.name, found.advertised) for found in layout.clients if found.advertised is not None],
        "metrics": spec.metrics.port if spec.metrics.enabled else None,
        "volumes": sorted(layout.volumes),
        "image": spec.image,
        "resources": resources,
        "pod": of_pod(layout),
        "services": of_services(layout),
        "audit": spec.is_audited,
        "security": _of_security(layout),
        "restart": restart_mark(layout.cluster),
    }
    told = {name: value for name, value in asks.items() if value}
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _of_security(layout: Layout) -> dict[str, Any]:
    """Security that the resource asks for; empty for a cluster that is not secured."""
    spec = layout.cluster.spec
    if not spec.is_secured:
        return {}
    asked = {listener.name: (listener.sasl, listener.tls) for listener in spec.listeners}
    told = {
        name: [part.to_dict() if part is not None else None for part in parts]
        for name, parts in asked.items()
        if parts != (None, None)
    }
    return {"listeners": told, "authorization": spec.authorization.to_dict() if spec.authorization else None}


def is_as_asked(layout: Layout, started: Mapping[str, Any]) -> bool:
    """Whether a node was started with all that the resource asks of it now. `started` is its pod, or the template."""
    mark, settings = annotation(started, ASKED), parse_properties(annotation(started, SETTINGS)).keys()
    by_spelling = hash_layout(layout, settings, layout.node.pool.resources)  # of versions that knew amounts so
    return mark in {mark_of(layout, settings), by_spelling}
