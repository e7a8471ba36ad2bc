"""Why a cluster cannot be run as pods as it is wanted now: each reason names the field and the fix. Pure."""

from collections.abc import Iterable, Iterator

from kavka_operator.platform.kubernetes.objects.names import (
    CLUSTER_ID,
    DIRECTORY_ID,
    annotation,
    name_of,
    node_name,
    pod_name,
)
from kavka_operator.platform.kubernetes.objects.settings import Layout, properties
from kavka_operator.platform.kubernetes.observe import node_objects
from kavka_operator.platform.kubernetes.observe.node_objects import Known

SETTINGS_BYTES_MAX = 200_000
"""Of server.properties: it travels in an annotation, and all of those together have 256 KiB at most."""


def faults(layouts: Iterable[Layout], known: Known, image: str | None, *, sees_machines: bool) -> list[str]:
    """The reasons, each once."""
    found = (words for layout in layouts for words in _of_node(layout, known, image, sees_machines=sees_machines))
    return list(dict.fromkeys(found))


def unwanted(number: int) -> str:
    """The reason why a node that the resource does not want cannot be started."""
    return (
        f"node {number} is not wanted any more, so that nothing says how to start it; want it again: what its"
        " PersistentVolumeClaims hold is kept"
    )


def _of_node(layout: Layout, known: Known, image: str | None, *, sees_machines: bool) -> Iterator[str]:
    pool, spec = layout.node.pool, layout.cluster.spec
    if spec.image is None and image is None:
        yield "spec.image: this operator has no image of its own for brokers; name one here, or give the operator one"
    if pool.topology_key is not None and not sees_machines and layout.node.rack is None:
        yield (
            f'spec.nodePools "{pool.name}": topologyKey cannot be followed, as this operator may not see machines;'
            " write racks, or let it watch all namespaces"
        )
    elif pool.topology_key is not None and layout.node.rack is None and not known.claims_of(layout.node.id):
        yield (
            f'spec.nodePools "{pool.name}": no machine that takes its pods has the label {pool.topology_key}; label the'
            " machines, or write another topologyKey"
        )
    for volume in () if layout.is_ephemeral else pool.storage.volumes:
        if volume.size is None:
            yield f'spec.nodePools "{pool.name}": volume "{volume.name}" has no size; write one such as size: 10Gi'
    yield from _wiped(layout, known)
    if len(known.cluster_ids) > 1:
        found = ", ".join(sorted(known.cluster_ids))
        yield f"the volumes belong to {len(known.cluster_ids)} clusters ({found}); delete those that do not belong here"
    if len(properties(layout).encode()) > SETTINGS_BYTES_MAX:
        yield f"spec.config: has more than {SETTINGS_BYTES_MAX} bytes in all, which no pod can carry; shorten it"


def _wiped(layout: Layout, known: Known) -> Iterator[str]:
    """The reasons against going on with claims that do not say any more what their volumes were formatted with.

    Such a claim was edited, or made again with an empty volume: which of them, nobody here can see. With the former id
    an empty volume would vote, and be taken for in sync, as the one that it replaces.
    """
    number, ids = layout.node.id, node_objects.formatted(known, layout.node.id)
    namespace, pod = layout.cluster.metadata.namespace, pod_name(node_name(layout.name, layout.node))
    for volume, claim in node_objects.wiped(known, number).items():
        name, former = name_of(claim), {CLUSTER_ID: ids.cluster_id, DIRECTORY_ID: ids.directories.get(volume, "")}
        lost = [key for key in node_objects.IDS if not annotation(claim, key)]
        again = " ".join(f"{key}={former[key] or '...'}" for key in lost)
        source = "" if all(former[key] for key in lost) else " with the ids in its meta.properties"
        yield (
            f'PersistentVolumeClaim "{name}" has lost {" and ".join(lost)}: if its volume has what it had, run kubectl'
            f" annotate -n {namespace} pvc {name} {again}{source}; if it is empty, delete the claim and the pod"
            f' "{pod}"'
        )
