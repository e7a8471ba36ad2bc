"""What a cluster has once: its Services, the guard of its controllers, and the key of its audit trail.

They are put right at each look, and Services that nobody wants any more go.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.kubernetes.live.api import CONFLICT, GONE, ApiError
from kavka_operator.platform.kubernetes.live.secrets import AuditKey
from kavka_operator.platform.kubernetes.objects import manifests
from kavka_operator.platform.kubernetes.objects.names import Document, audit_key_name
from kavka_operator.platform.kubernetes.objects.settings import Layout
from kavka_operator.platform.kubernetes.observe import services
from kavka_operator.platform.kubernetes.observe.listeners import former
from kavka_operator.platform.kubernetes.observe.node_objects import Known

SHARED = ("Service", "NetworkPolicy")
"""The kinds of objects that a cluster has once."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Keeps the objects of one cluster. `put` applies one, unless one of its name is another's; `delete` deletes."""

    audit_key: AuditKey
    put: Callable[[KafkaCluster, Document, Mapping[str, Any] | None], Document]
    delete: Callable[[Document], None]

    def provide(self, cluster: KafkaCluster, layouts: Mapping[int, Layout], known: Known) -> tuple[list[str], bool]:
        """Put right what the cluster has once: the reasons why that cannot be, and whether any was written.

        Raises ApiError where the API server does not answer.
        """
        wanted = list(services.services(cluster, [layout.node for layout in layouts.values()]))
        has_written = False
        for manifest in [*manifests.shared(cluster, former(known, layouts)), *wanted]:
            kind, name = manifest["kind"], manifest["metadata"]["name"]
            seen = known.shared.get((kind, name))
            if seen is not None and manifests.is_ours(seen, cluster) and manifests.covers(seen, manifest):
                continue
            try:
                self.put(cluster, manifest, seen)
            except PlatformUnavailableError as error:
                return [str(error)], has_written
            except ApiError as error:
                if not 400 <= error.status < 500:
                    raise
                return [f'{kind} "{name}" cannot be written: {error}'], has_written
            has_written = True
        try:
            self.audit_key.keep(cluster)
        except ApiError as error:
            if not 400 <= error.status < 500:
                raise
            return [f'Secret "{audit_key_name(cluster.name)}" cannot be made: {error}'], has_written
        return [], self._withdraw(cluster, services.stale(known, wanted, layouts)) or has_written

    def _withdraw(self, cluster: KafkaCluster, stale: list[Document]) -> bool:
        """Delete the cluster's Services that are not wanted any more; whether there were any. Raises ApiError."""
        own = [document for document in stale if manifests.is_ours(document, cluster)]
        for document in own:
            try:
                self.delete(document)
            except ApiError as error:
                if error.status not in {GONE, CONFLICT}:
                    raise
        return bool(own)
