"""Defects of a cluster with nodes of two releases that we plant to see that the simulation finds them."""

from typing import Any

from kavka_broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from kavka_broker.core.partition.producer_state import ProducerStates
from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.net.outbound import Link
from kavka_broker.peers import ApiRanges
from tests.sim.changes import OF_FEATURES
from tests.sim.loop import PROCESS
from tests.sim.teething import Patch, tooth

CHANGES = " ".join(OF_FEATURES)


@tooth("a node asks another in the versions that it spoke before its restart", "kill", 5, releases=True,
       workloads="coordinated")  # fmt: skip
def versions_are_kept(patch: Patch) -> None:
    kept: dict[tuple[str, str], ApiRanges] = {}
    greet = Link.greet

    async def greet_once(self: Link) -> None:
        await greet(self)
        self.versions = kept.setdefault((str(PROCESS.get()), self.name), self.versions)

    patch.setattr(Link, "greet", greet_once)


@tooth("a broker offers its own versions of what the controller decides", "kill", 5, releases=True,
       workloads="coordinated")  # fmt: skip
def own_versions_are_offered(patch: Patch) -> None:
    patch.setattr(ControllerChannel, "versions", None)


@tooth("a coordinator writes in the form of the level at its start", "kill isolate", 10, releases=True,
       changes=CHANGES, workloads="coordinated")  # fmt: skip
def levels_are_read_once(patch: Patch) -> None:
    found: dict[TransactionCoordinator, int] = {}
    version: Any = TransactionCoordinator.version

    def version_at_first(self: TransactionCoordinator) -> int:
        return found.setdefault(self, version.fget(self))

    patch.setattr(TransactionCoordinator, "version", property(version_at_first))


@tooth("a marker that names no transaction version is taken for one of version 2", "kill isolate", 10, releases=True,
       changes=CHANGES, workloads="coordinated")  # fmt: skip
def markers_are_of_version_2(patch: Patch) -> None:
    check_marker = ProducerStates.check_marker

    def check_rising(self: ProducerStates, *marker: int, epochs_rise: bool) -> None:
        check_marker(self, *marker, epochs_rise=True)

    patch.setattr(ProducerStates, "check_marker", check_rising)
