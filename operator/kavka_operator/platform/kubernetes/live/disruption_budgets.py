"""A PodDisruptionBudget for each node that is a pod: open while others may take it away, closed otherwise.

Which may go is decided elsewhere (`reconcile/rollout/disruption.py`). An eviction asks the API server alone: it is
refused while the budget of its pod allows none, and from the moment that a budget was changed until Kubernetes has
counted again. So what is to close is written before what is to open, and at no moment do two stand open that may not
go together. An operator that is away leaves one node that can be evicted, and no second one.

A budget belongs to the StatefulSet of its node and goes with it. One of the same name that somebody else has made is
left alone, and the condition says so: Kubernetes evicts no pod that has two.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.kubernetes.live.api import CONFLICT, GONE, Api, ApiError, Bridge
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.platform.kubernetes.objects.manifests import covers, owner_of
from kavka_operator.platform.kubernetes.objects.names import (
    CLUSTER,
    MANAGED_BY,
    NODE_ID,
    OPERATOR,
    Document,
    label,
    labels_of,
    name_of,
    selector_of,
    uid_of,
)

KIND = "PodDisruptionBudget"
KEPT_OF_METADATA = ("name", "namespace", "uid", "labels", "ownerReferences")
KNOWN_SECONDS_MAX = 10.0
"""How long a list of the budgets is believed."""


@dataclass(slots=True)
class Budgets:
    """The budgets of one cluster."""

    key: ClusterKey
    api: Api
    bridge: Bridge
    clock: Callable[[], float]
    _known: dict[str, Document] = field(default_factory=dict)
    _listed_at: float | None = None

    def allow(self, cluster: KafkaCluster, sets: Mapping[int, Document], nodes: frozenset[int]) -> bool:
        """Open the budgets of these nodes and close all others; whether any was written. `sets` are StatefulSets.

        Raises PlatformUnavailableError.
        """
        try:
            self._list()
            wanted = [budget(cluster, sets[number], number, is_open=number in nodes) for number in sorted(sets)]
            self._close_others(map(name_of, wanted))
            return sum(map(self._put, sorted(wanted, key=is_open))) > 0  # closed ones first, and all of them
        except ApiError as error:
            self._listed_at = None
            raise PlatformUnavailableError(f"the budgets of the nodes cannot be written: {error}") from error

    def _list(self) -> None:
        now = self.clock()
        if self._listed_at is not None and now - self._listed_at < KNOWN_SECONDS_MAX:
            return
        namespace, name = self.key
        found = self.bridge.wait(self.api.labelled(KIND, namespace, {CLUSTER: name}))
        self._known, self._listed_at = {name_of(document): document for document in found}, now

    def _close_others(self, names: Iterable[str]) -> None:
        """Close the budgets of nodes that are not known now, as to an operator that could not list them yet."""
        kept = set(names)
        for name, seen in list(self._known.items()):
            if name in kept or not is_open(seen) or label(seen, MANAGED_BY) != OPERATOR:
                continue
            metadata = {key: found for key, found in seen["metadata"].items() if key in KEPT_OF_METADATA}
            spec = {"maxUnavailable": 0, "selector": seen["spec"].get("selector")}
            try:
                manifest = {"apiVersion": "policy/v1", "kind": KIND, "metadata": metadata, "spec": spec}
                self._known[name] = self.bridge.wait(self.api.put(manifest))
            except ApiError as error:
                if error.status not in {GONE, CONFLICT}:
                    raise

    def _put(self, manifest: Document) -> bool:
        """Apply a budget, unless it is so already; whether it was written."""
        name = name_of(manifest)
        seen = self._known.get(name)
        if seen is not None and covers(seen, manifest):
            return False
        if seen is None:
            seen = self.bridge.wait(self.api.find(KIND, self.key[0], name))
        if seen is not None and label(seen, MANAGED_BY) != OPERATOR:
            raise PlatformUnavailableError(f'{KIND} "{name}" is there and is not of this KafkaCluster; delete it')
        if seen is not None and owner_of(seen) not in {None, owner_of(manifest)}:
            return False  # of a StatefulSet that is gone, and on its way after it
        self._known[name] = self.bridge.wait(self.api.put(manifest))
        return True


def budget(cluster: KafkaCluster, stateful_set: Document, number: int, *, is_open: bool) -> Document:
    """The budget of a node."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": name_of(stateful_set),
        "uid": uid_of(stateful_set),
        "controller": True,
        "blockOwnerDeletion": False,
    }
    name = cluster.metadata.name
    return {
        "apiVersion": "policy/v1",
        "kind": KIND,
        "metadata": {
            "name": name_of(stateful_set),
            "namespace": cluster.metadata.namespace,
            "labels": {**labels_of(name), NODE_ID: str(number)},
            "ownerReferences": [owner],
        },
        "spec": {"maxUnavailable": int(is_open), "selector": {"matchLabels": selector_of(name, number)}},
    }


def is_open(manifest: Document) -> bool:
    """Whether a budget lets its node go."""
    return bool(manifest["spec"].get("maxUnavailable"))
