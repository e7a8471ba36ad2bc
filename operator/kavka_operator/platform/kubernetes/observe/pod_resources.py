"""Processor and memory of a broker that runs, where Kubernetes changes them without a restart (1.33 and later). Pure.

A pod takes other amounts of what it has, and nothing besides: an amount that comes or goes, another kind of resource,
or any other setting is a restart. A pod that an earlier version made does not say what it was made with besides, and is
restarted too. The pod's marks are written again with the amounts: from then on it has what was asked for.
"""

from collections.abc import Mapping
from typing import Any, Final

from kavka_operator.api.stored_resources import part
from kavka_operator.platform.kubernetes.objects.names import ASKED, BESIDES_RESOURCES, FINGERPRINT, Document, annotation
from kavka_operator.platform.kubernetes.objects.pod_template import BROKER
from kavka_operator.platform.kubernetes.objects.quantities import plain
from kavka_operator.platform.kubernetes.objects.settings import Layout, besides_resources, fingerprint
from kavka_operator.platform.kubernetes.objects.spec_hash import mark_of
from kavka_operator.platform.kubernetes.observe import node_objects
from kavka_operator.platform.kubernetes.observe.node_objects import Known

IN_PLACE: Final = ("cpu", "memory")
LIMITS, REQUESTS = "limits", "requests"
PENDING, UNDER_WAY = "PodResizePending", "PodResizeInProgress"
RESIZE = "pods/resize"
TOO_OLD = "this Kubernetes changes no resources of pods that run"


def can_resize(version: Mapping[str, Any]) -> bool:
    """Whether a Kubernetes changes the resources of a pod that runs, by what it says of its core API."""
    return any(resource.get("name") == RESIZE for resource in version.get("resources") or ())


def is_in_place(known: Known, layout: Layout) -> bool:
    """Whether a broker that runs is to have other amounts of processor and memory, and nothing else."""
    return not node_objects.is_level(known, layout) and obstacle(known, layout) is None


def obstacle(known: Known, layout: Layout) -> str | None:
    """The reason why a node takes other resources by a restart alone; None if it takes them while it runs."""
    pod = known.pods.get(layout.node.id)
    if pod is None or not node_objects.serves(pod):
        return "its broker does not run"
    besides = annotation(pod, BESIDES_RESOURCES)
    if not besides:
        return "its pod was made by an earlier version"
    if besides != besides_resources(layout):
        return "it is not all that changes"
    if _rest(node_objects.resources_of(known, layout.node.id)) != _rest(layout.node.pool.resources):
        return "Kubernetes changes amounts in place, and adds or takes away none"
    return None


def _rest(resources: Mapping[str, Any]) -> dict[str, Any]:
    """All that has to stay the same: which amounts there are, and those of anything but processor and memory."""
    asked = _whole(resources)
    return {
        name: {key: None if key in IN_PLACE else value for key, value in amounts.items()}
        for name, amounts in asked.items()
        if amounts
    }


def _whole(resources: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Limits and requests; where no request says otherwise, Kubernetes takes the limit for it."""
    found = plain(resources)
    limits = part(found, LIMITS)
    return {LIMITS: dict(limits), REQUESTS: {**limits, **part(found, REQUESTS)}}


def amounts(layout: Layout) -> Document:
    """The patch of a pod that gives its broker what is asked for."""
    asked = layout.node.pool.resources
    requests = {**part(asked, LIMITS), **part(asked, REQUESTS)}
    wanted = {LIMITS: part(asked, LIMITS), REQUESTS: requests}
    return {
        "spec": {"containers": [{"name": BROKER, "resources": {key: value for key, value in wanted.items() if value}}]}
    }


def marks(layout: Layout) -> Document:
    """The patch of a pod that notes what its broker has been given."""
    return {"metadata": {"annotations": {FINGERPRINT: fingerprint(layout), ASKED: mark_of(layout)}}}


def under_way(pod: Mapping[str, Any]) -> str:
    """Words for a change of amounts that the machine has not carried out yet; empty where none is under way."""
    status = part(pod, "status")
    for condition in status.get("conditions") or ():
        if condition.get("type") in {PENDING, UNDER_WAY} and condition.get("status") == "True":
            words = ": ".join(str(found) for key in ("reason", "message") if (found := condition.get(key)))
            return node_objects.shortened(words) or "its machine is at it"
    generation, seen = part(pod, "metadata").get("generation"), status.get("observedGeneration")
    return "its machine has not heard of it yet" if generation and seen and seen < generation else ""
