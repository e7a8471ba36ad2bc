"""Planted defects of the coordinator of transactions, and of those whom it asks: what others got wrong once."""

from collections.abc import Iterator

from kavka_broker.coordinator.marker_sender import MarkerSender, Owed
from kavka_broker.coordinator.staging import Staging
from kavka_broker.core.group.staged import StagedOffset
from kavka_broker.loop.slices import Work
from tests.sim.teething import Patch, tooth


@tooth("a transaction is complete before its markers are written", "kill isolate", 5, workloads="coordinated")
def markers_are_not_sent(patch: Patch) -> None:
    def route(self: MarkerSender, owed: Owed) -> None:
        owed.transaction.unmarked.clear()
        owed.shard.complete_if_marked(owed.transaction)

    patch.setattr(MarkerSender, "_route", route)


@tooth("offsets of an aborted transaction count", "kill isolate", 5, workloads="coordinated")
def aborted_offsets_count(patch: Patch) -> None:
    settling = Staging._settling

    def settle_all(self: Staging, ended: Iterator[StagedOffset], *, commits: bool) -> Work[None]:
        return settling(self, ended, commits=True)

    patch.setattr(Staging, "_settling", settle_all)


@tooth("offsets of a committed transaction are dropped", "kill isolate", seeds="11", workloads="coordinated")
def committed_offsets_are_dropped(patch: Patch) -> None:
    settling = Staging._settling

    def settle_none(self: Staging, ended: Iterator[StagedOffset], *, commits: bool) -> Work[None]:
        return settling(self, ended, commits=False)

    patch.setattr(Staging, "_settling", settle_none)
