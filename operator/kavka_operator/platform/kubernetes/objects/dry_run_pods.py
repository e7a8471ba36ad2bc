"""The pod of a node as an API server is asked about it by a dry run, and what its refusal means. Pure.

A quota counts the pod that runs and that the new one takes the place of. So a refusal for lack of quota is none where
what the former pod uses is enough.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from kavka_operator.api.stored_resources import part
from kavka_operator.platform.kubernetes.objects.names import Document, name_of
from kavka_operator.platform.kubernetes.objects.quantities import KINDS, number_of

_QUOTA = re.compile(r"exceeded quota: \S+, requested: (\S+), used: (\S+), limited: (\S+)")
COUNTS = ("pods", "count/pods")


def pod_of(stateful_set: Document) -> Document:
    """The pod that a StatefulSet makes, under a name that no pod has."""
    template = stateful_set["spec"]["template"]
    metadata = {
        **template["metadata"],
        "namespace": stateful_set["metadata"]["namespace"],
        "generateName": f"{name_of(stateful_set)}-",
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def refused(pool: str, words: str) -> str:
    """Words for a refusal, with the field that it is about."""
    return f'spec.nodePools "{pool}": Kubernetes does not take its pods: {words}; change the pool, or what refuses it'


def fits_in_place_of(refusal: str, present: Mapping[str, Any] | None) -> bool:
    """Whether a pod was refused for lack of quota alone, and has enough when the present pod is gone."""
    found = _QUOTA.findall(refusal)
    return bool(found) and present is not None and all(_has_room(texts, _used_by(present)) for texts in found)


def _has_room(texts: tuple[str, str, str], freed: Mapping[str, Decimal]) -> bool:
    """Whether a quota has room, once something is freed; `texts` tell what is requested, used and limited."""
    requested, rest, most = map(_amounts, texts)
    return all(
        name in rest and name in most and rest[name] - freed.get(name, 0) + more <= most[name]
        for name, more in requested.items()
    )


def _amounts(text: str) -> dict[str, Decimal]:
    """The amounts in the words of a quota, by resource; one that cannot be read is more than there is."""
    pairs = (entry.partition("=") for entry in text.split(",") if entry)
    return {name: found if (found := number_of(value)) is not None else Decimal("Infinity") for name, _, value in pairs}


def _used_by(pod: Mapping[str, Any]) -> dict[str, Decimal]:
    """The amounts of a pod that quotas count. Its container that formats volumes asks for the same as its broker."""
    found = dict.fromkeys(COUNTS, Decimal(1))
    asked = [part(container, "resources") for container in part(pod, "spec").get("containers") or ()]
    for kind in KINDS:
        for amounts in (part(resources, kind) for resources in asked):
            for name, value in amounts.items():
                number = number_of(value) or Decimal(0)
                for counted in [f"{kind}.{name}", *([name] if kind == "requests" else [])]:
                    found[counted] = found.get(counted, Decimal(0)) + number
    return found
