"""What the loop of a cluster needs of the place where its nodes run, and of the place where its resources are kept.

On one machine that is a supervisor of processes and a directory; on Kubernetes pods and the API server. The loop
(`cluster_loop`) is the same for both.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource, Key
from kavka_operator.api.stored_resources import Unreadable
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.plan import NodeAction
from kavka_operator.reconcile.status import Status


class PlatformUnavailableError(Exception):
    """Nodes cannot be run here; the message says why."""


class NotWrittenError(Exception):
    """Something could not be written where resources are kept; the message says why."""


class Platform(Protocol):
    """The nodes of one cluster, in a place where nodes run."""

    def look(self, cluster: KafkaCluster) -> View:
        """The nodes as they are wanted and seen now."""
        ...

    def perform(self, action: NodeAction) -> None:
        """Begin an action; `look` tells when it is done. Raises PlatformUnavailableError."""
        ...

    def allow(self, cluster: KafkaCluster, nodes: frozenset[int]) -> bool:
        """Let others take these nodes away, and no other; whether that has changed. Raises PlatformUnavailableError."""
        ...


class Resources(Protocol):
    """The resources of one cluster, where they are kept. Every write may raise NotWrittenError or OSError."""

    def stamp(self) -> Hashable:
        """A value that changes whenever what is wanted does."""
        ...

    @property
    def is_being_changed(self) -> bool:
        """Whether another process is writing what is wanted, so that more of it follows."""
        ...

    def read(self) -> tuple[list[AnyResource], list[Unreadable]]:
        """Every resource with its status, the cluster first, and those that cannot be understood."""
        ...

    def set_status(self, resource: AnyResource, status: Status) -> bool:
        """Write a status if it says anything new; whether it was written."""
        ...

    def set_statuses(self, wanted: Sequence[tuple[AnyResource, Status]]) -> Mapping[Key, Exception]:
        """Write statuses of many resources, each if it says anything new; why some could not be written."""
        ...

    def note_unreadable(self, unread: Unreadable, status: Mapping[str, Any]) -> None:
        """Write the status of a resource that cannot be understood."""
        ...

    def hold(self, wanted: Sequence[tuple[AnyResource, bool]]) -> Mapping[Key, Exception]:
        """Keep resources, once deleted, until their deletion is done in Kafka, or do so no longer; why some are not."""
        ...

    def remove(self, key: Key) -> bool:
        """Release a resource whose deletion is done; False if it was declared again meanwhile."""
        ...

    def remove_all(self, keys: Sequence[Key]) -> Mapping[Key, bool | Exception]:
        """Release many resources, as `remove` does one; why some could not be released."""
        ...
