"""News of the objects that nodes are made of: which cluster is to be looked at again. A look reads what they say.

Kept as numbers, one a cluster that has nodes, so that a look knows whether anything was heard since its list.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.platform.kubernetes.objects.names import CLUSTER, label

CLUSTERS_MAX = 10_000


@dataclass(slots=True)
class News:
    """Counts of what was heard of each cluster's objects; `hurry` is told which cluster has news."""

    hurry: Callable[[ClusterKey], None]
    _counts: dict[ClusterKey, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, document: Mapping[str, Any]) -> None:
        """Note that an object was made, has changed, or is gone."""
        cluster = (str(document["metadata"].get("namespace")), label(document, CLUSTER))
        with self._lock:
            if cluster not in self._counts and len(self._counts) >= CLUSTERS_MAX:
                del self._counts[next(iter(self._counts))]  # its next look lists again, which costs one list
            self._counts[cluster] = self._counts.get(cluster, 0) + 1
        self.hurry(cluster)

    def count(self, cluster: ClusterKey) -> int:
        """A number that changes whenever something is heard of a cluster's objects."""
        with self._lock:
            return self._counts.get(cluster, 0)
