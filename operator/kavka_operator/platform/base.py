"""What the reconcilers need of a place where nodes run."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.plan import NodeAction
from kavka_operator.domain.seen import SeenNode, WantedNode


class PlatformUnavailableError(Exception):
    """Nodes cannot be run here; the message says why."""


class Platform(Protocol):
    """A place where nodes run. An action only begins; `seen` tells when it is done."""

    def wanted(self, cluster: KafkaCluster) -> Sequence[WantedNode]:
        """The nodes that the resource wants, as this platform would run them."""
        ...

    def seen(self) -> Mapping[int, SeenNode]:
        """The nodes that the platform has started."""
        ...

    def perform(self, action: NodeAction) -> None:
        """Begin an action. Raises PlatformUnavailableError."""
        ...
