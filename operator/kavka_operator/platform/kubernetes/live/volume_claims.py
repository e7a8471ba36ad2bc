"""The claims of a cluster's volumes, and the ids on them.

Ids are drawn before anything is formatted, and kept on the claims, in this order: first every claim with the id of its
directory, then on each the list of the first controllers. An operator that dies in between is followed by one that goes
on with the same ids; a volume that is made again later has an id that is not in the list.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.kubernetes.live.object_list import ObjectList
from kavka_operator.platform.kubernetes.live.own_objects import OwnObjects
from kavka_operator.platform.kubernetes.objects import manifests
from kavka_operator.platform.kubernetes.objects.names import DIRECTORY_ID, FORMATTED, annotation, name_of
from kavka_operator.platform.kubernetes.objects.pod_template import Identity
from kavka_operator.platform.kubernetes.objects.settings import Layout, controller_port
from kavka_operator.platform.kubernetes.observe import node_objects


@dataclass(frozen=True, slots=True)
class VolumeClaims:
    """Makes the claims of one cluster and keeps ids on them. `draw` gives a random id.

    Each method may raise ApiError, and PlatformUnavailableError where an object is another's or has lost its id.
    """

    listed: ObjectList
    objects: OwnObjects
    draw: Callable[[], str]

    def form(self, layouts: Iterable[Layout]) -> None:
        """Draw all ids of a new cluster, and write them down: the claims, and then who the first controllers are."""
        nodes = list(layouts)
        for layout in nodes:
            self.add_missing(layout)
        initial = ",".join(
            f"{layout.node.id}@{layout.host}:{controller_port(layout.cluster)}:"
            f"{self.id_of(layout.node.id, layout.metadata)}"
            for layout in nodes
            if layout.node.is_controller
        )
        for layout in nodes:
            for name in layout.claimed:
                self.write(layout, name, {**self.ids_on(layout.node.id, name), **manifests.formed(initial)})
        self.listed.relist()

    def add_missing(self, layout: Layout) -> None:
        """Make the claims that a node lacks, each with an id of its own."""
        known = self.listed.known
        there = known.claims_of(layout.node.id)
        missing = [name for name in layout.claimed if name not in there]
        cluster_id = next(iter(known.cluster_ids), None) or self.draw()
        for name in missing:
            self.write(layout, name, manifests.kept_of(cluster_id, self.draw(), known.initial))
        if missing:
            self.listed.relist()

    def keep_zone(self, layout: Layout) -> None:
        """Note on a node's claims the rack that it has by the label of its machine, before its pod asks for it."""
        number = layout.node.id
        wanted = manifests.zone_of(layout.node)
        for name, claim in self.listed.known.claims_of(number).items():
            if name in layout.claimed and any(annotation(claim, key) != value for key, value in wanted.items()):
                self.write(layout, name, self.ids_on(number, name))

    def write(self, layout: Layout, name: str, kept: Mapping[str, str]) -> None:
        """Write the claim of a volume: as large as is asked for, or as another has made it."""
        volume = next(found for found in layout.node.pool.storage.volumes if found.name == name)
        seen = self.listed.known.claims_of(layout.node.id).get(name)
        size = max(volume.size or 0, node_objects.size_of(seen) if seen is not None else 0)
        self.objects.put(layout.cluster, manifests.claim(layout, volume, kept, size), seen)

    def id_of(self, number: int, name: str) -> str:
        """The id that was drawn for a volume. Raises PlatformUnavailableError where its claim has lost it."""
        claim = self.listed.known.claims_of(number)[name]
        if not (found := annotation(claim, DIRECTORY_ID)):
            raise PlatformUnavailableError(f"{name_of(claim)} has lost its {DIRECTORY_ID} since the look")
        return found

    def ids_on(self, number: int, name: str) -> dict[str, str]:
        """The ids that are kept on the claim of a volume, and whether it is formatted."""
        known = self.listed.known
        (cluster_id,) = known.cluster_ids
        drawn = self.id_of(number, name)
        kept = manifests.kept_of(cluster_id, drawn, known.initial)
        return {**kept, **({FORMATTED: drawn} if node_objects.is_formatted(known.claims_of(number)[name]) else {})}

    def identity(self, layout: Layout) -> Identity:
        """The ids with which volumes are formatted: a first controller's only where its directory is still the same."""
        known = self.listed.known
        claims = known.claims_of(layout.node.id)
        ids = {name: self.id_of(layout.node.id, name) for name in claims if name in layout.claimed}
        own = ids.get(layout.metadata, "")
        is_first = bool(own) and any(entry.endswith(f":{own}") for entry in known.initial.split(","))
        (cluster_id,) = known.cluster_ids
        before = [name for name in ids if node_objects.is_formatted(claims[name])]
        return Identity(cluster_id, ids, known.initial if is_first else "", before)
