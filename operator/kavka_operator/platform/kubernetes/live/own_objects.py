"""Writes objects of one namespace, and leaves alone those of the same name that another has made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.kubernetes.live.api import Api, Bridge
from kavka_operator.platform.kubernetes.objects import manifests
from kavka_operator.platform.kubernetes.objects.names import Document


@dataclass(frozen=True, slots=True)
class OwnObjects:
    """Applies and deletes the objects of KafkaClusters in one namespace."""

    namespace: str
    api: Api
    bridge: Bridge

    def put(self, cluster: KafkaCluster, manifest: Document, seen: Mapping[str, Any] | None) -> Document:
        """Apply an object, unless one of its name belongs to another. Raises ApiError, PlatformUnavailableError."""
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        if seen is None:
            seen = self.bridge.wait(self.api.find(kind, self.namespace, name))
        if seen is not None and not manifests.is_ours(seen, cluster):
            raise PlatformUnavailableError(
                f'{kind} "{name}" is there and is not of this KafkaCluster; delete it, or give the cluster another name'
            )
        return self.bridge.wait(self.api.put(manifests.with_uid(manifest, seen)))

    def delete(self, document: Document) -> None:
        """Delete an object as it was read last. Raises ApiError."""
        self.bridge.wait(self.api.delete(document))
