"""Describes the nodes of a cluster at one moment, as the platform that runs them wants and sees them."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from kavka_operator.api.audit import AnalyticsStatus
from kavka_operator.domain.access import OPEN, Security
from kavka_operator.domain.certificates import SeenCertificates
from kavka_operator.domain.observed import SeenNode, SeenVolume, WantedNode


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
