"""Why a cluster cannot be run as pods as it is wanted now: each reason names the field and the fix. Pure."""

from collections.abc import Iterable, Iterator

from kavka_operator.platform.kubernetes.seeing import Known
from kavka_operator.platform.kubernetes.settings import Layout, properties

SETTINGS_BYTES_MAX = 200_000
"""Of server.properties: it travels in an annotation, and all of those together have 256 KiB at most."""


def faults(layouts: Iterable[Layout], known: Known, image: str | None, *, sees_machines: bool) -> list[str]:
    """The reasons, each once."""
    found = (words for layout in layouts for words in _of_node(layout, known, image, sees_machines=sees_machines))
    return list(dict.fromkeys(found))


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
    for volume in pool.storage.volumes:
        if volume.size is None:
            yield f'spec.nodePools "{pool.name}": volume "{volume.name}" has no size; write one such as size: 10Gi'
    if len(known.cluster_ids) > 1:
        found = ", ".join(sorted(known.cluster_ids))
        yield f"the volumes belong to {len(known.cluster_ids)} clusters ({found}); delete those that do not belong here"
    if len(properties(layout).encode()) > SETTINGS_BYTES_MAX:
        yield f"spec.config: has more than {SETTINGS_BYTES_MAX} bytes in all, which no pod can carry; shorten it"
