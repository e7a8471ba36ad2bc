"""Defects of replication and of what the controller decides, each at a moment that a storm by itself seldom meets."""

from typing import Any

from kavka_broker.core.metadata.decide import heartbeats, partition_change
from kavka_broker.replica.hosting.moves import Moves
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.storage.durability import Durability
from tests.sim.teething import Patch, tooth

# --- judged where it is played ----------------------------------------------------------------------------------------


@tooth("DeleteRecords is answered when the leader alone has moved", "", seeds="940029")
def deletion_answered_by_the_leader(patch: Patch) -> None:
    patch.setattr(Partition, "low_watermark", property(lambda self: self.log.log_start_offset))


@tooth("a controlled shutdown does not wait until others have seen who leads", "unheard_handover", 3)
def handover_not_waited_for(patch: Patch) -> None:
    must = heartbeats._must_hand_over

    def must_hand_over(metadata: Any, broker: Any, command: Any, **how: Any) -> bool:
        return not broker.in_controlled_shutdown and must(metadata, broker, command, **how)

    patch.setattr(heartbeats, "_must_hand_over", must_hand_over)


@tooth("a replica that has moved does not report its directory", "", seeds="940021")
def directory_not_reported(patch: Patch) -> None:
    finish = Moves._finish

    def finish_quietly(self: Moves, *args: Any) -> None:
        moved, self._moved = self._moved, lambda partition: None
        finish(self, *args)
        self._moved = moved

    patch.setattr(Moves, "_finish", finish_quietly)


@tooth("a flush syncs files and not their names", "", seeds="940017")
def names_not_synced(patch: Patch) -> None:
    patch.setattr(Durability, "_sync_names", lambda self: self.note_secured(self._segments.name_changes))


@tooth("the ELR forgets who leaves the ISR as it falls below min.insync.replicas (KIP-966)", "", seeds="940016")
def eligible_replica_forgotten(patch: Patch) -> None:
    with_eligible = partition_change._with_eligible

    def forget(before: Any, state: Any, rules: Any, lost: frozenset[int]) -> Any:
        was_enough = partition_change._has_enough(before, rules)
        return with_eligible(before._replace(isr=()) if was_enough else before, state, rules, lost)

    patch.setattr(partition_change, "_with_eligible", forget)
