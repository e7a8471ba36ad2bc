"""What the loop of a cluster needs of the place where its nodes run, and of the place where its resources are kept.

On one machine that is a supervisor of processes and a directory; on Kubernetes pods and the API server. The loop
(`cluster`) is the same for both.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kavka_operator.api.audit import AnalyticsStatus
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource, Key
from kavka_operator.api.stored import Unreadable
from kavka_operator.domain.access import OPEN, Security
from kavka_operator.domain.certificates import SeenCertificates
from kavka_operator.domain.plan import NodeAction
from kavka_operator.domain.seen import SeenNode, SeenVolume, WantedNode
from kavka_operator.reconcile.status import Status


class PlatformUnavailableError(Exception):
    """Nodes cannot be run here; the message says why."""


class NotWrittenError(Exception):
    """Something could not be written where resources are kept; the message says why."""


@dataclass(frozen=True, slots=True)
class View:
    """The nodes of a cluster at one moment, wanted and seen.

    `places` are address and, on one machine, directory of each node; `leaving` run and are no longer wanted;
    `outside` says, by listener, where clients outside begin; `begin` is one address inside for all brokers, where the
    platform has it; `metrics` are the addresses of running nodes' admin ports;
    `bootstrap` those of running brokers. `refusal` says why the cluster cannot be run as it is wanted now. `stamp`
    changes with the state of any node: what was decided before is then out of date. `pools` are the first ids of pools,
    where the platform keeps them itself. `asked` are the nodes whose machine is to be emptied. `security` is what
    brokers ask of clients; `lacking` says what is missing for it, so that nobody is asked. `analytics` is how the runs
    stand that ask the audit trail; `certificates` are those of a secured cluster.
    """

    wanted: Sequence[WantedNode] = ()
    seen: Mapping[int, SeenNode] = field(default_factory=dict)
    volumes: Mapping[int, Sequence[SeenVolume]] = field(default_factory=dict)
    leaving: Sequence[WantedNode] = ()
    places: Mapping[int, tuple[str, str | None]] = field(default_factory=dict)
    outside: Mapping[str, str] = field(default_factory=dict)
    begin: str = ""
    metrics: Mapping[int, str] = field(default_factory=dict)
    bootstrap: str = ""
    pools: Mapping[str, int] | None = None
    refusal: str | None = None
    stamp: Hashable = None
    asked: frozenset[int] = frozenset()
    security: Security = OPEN
    lacking: str | None = None
    analytics: AnalyticsStatus | None = None
    certificates: SeenCertificates | None = None

    @property
    def brokers_expected(self) -> int:
        """The number of brokers there will be once all have joined."""
        return sum("broker" in node.roles for node in self.wanted)


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
