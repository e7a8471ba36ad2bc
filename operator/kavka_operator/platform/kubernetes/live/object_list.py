"""The objects of one cluster as they were listed last: nodes, pods, volumes, and what the cluster has once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kavka_operator.platform.kubernetes.live.api import Api, Bridge
from kavka_operator.platform.kubernetes.live.cluster_objects import SHARED
from kavka_operator.platform.kubernetes.live.missing_pods import Podless
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.platform.kubernetes.objects.names import CLUSTER, Document, name_of
from kavka_operator.platform.kubernetes.observe import node_objects, zones
from kavka_operator.platform.kubernetes.observe.node_objects import Known

KNOWN_SECONDS_MAX: Final = 10.0
"""How long a list is believed where nothing was heard of the cluster's objects since."""


@dataclass(slots=True)
class ObjectList:
    """Lists the objects of a cluster again where something was heard of them, or after a while.

    `news` counts what was heard of the cluster's objects; `sees_machines` says whether machines may be asked for.
    """

    key: ClusterKey
    api: Api
    bridge: Bridge
    clock: Callable[[], float]
    news: Callable[[], int]
    podless: Podless
    sees_machines: bool
    known: Known = field(default_factory=Known)
    cordoned: set[str] = field(default_factory=set)
    machines: list[zones.Machine] | None = None
    """All machines, as long as the list of the cluster's objects is believed; None while nobody needs them."""
    _listed: tuple[int, float] | None = None

    def refresh(self) -> None:
        """List the cluster's objects, where something was heard of them since, or a while ago. Raises ApiError."""
        heard, now = self.news(), self.clock()
        if self._listed is not None and self._listed[0] == heard and now - self._listed[1] < KNOWN_SECONDS_MAX:
            return
        kinds = ("StatefulSet", "Pod", "PersistentVolumeClaim", *SHARED)
        found = {kind: self._labelled(kind) for kind in kinds}
        sets, pods = node_objects.by_node(found["StatefulSet"]), node_objects.by_node(found["Pod"])
        self.known = Known(
            sets,
            pods,
            {name_of(claim): claim for claim in found["PersistentVolumeClaim"]},
            {(kind, name_of(document)): document for kind in SHARED for document in found[kind]},
            self.podless.words(sets, pods),
        )
        self.cordoned = self.bridge.wait(self.api.cordoned()) if self.sees_machines else set()
        self.machines = None
        self._listed = (heard, now)

    def expire(self) -> None:
        """Believe the list no longer: something of it was written."""
        self._listed = None

    def relist(self) -> None:
        """List the cluster's objects now. Raises ApiError."""
        self.expire()
        self.refresh()

    def look_up_machines(self) -> list[zones.Machine]:
        """All machines of the Kubernetes. Raises ApiError."""
        self.machines = [zones.machine_from(found) for found in self.bridge.wait(self.api.machines())]
        return self.machines

    def _labelled(self, kind: str) -> list[Document]:
        namespace, name = self.key
        return self.bridge.wait(self.api.labelled(kind, namespace, {CLUSTER: name}))
