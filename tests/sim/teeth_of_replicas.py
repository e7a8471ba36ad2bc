"""Defects of replication and of what the controller decides, each at a moment that a storm by itself seldom meets."""

from typing import Any

from kavka_broker.controller.sessions import Sessions
from kavka_broker.core.metadata.decide import partition_change
from kavka_broker.core.partition.isr_proposal import IsrAnswer
from kavka_broker.core.partition.leader import LeaderState
from kavka_broker.core.raft import leader as raft_leader
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.replica.following import fetched_batches
from kavka_broker.replica.hosting.moves import Moves
from kavka_broker.replica.leading.fetch_session_partition import SessionPartition
from kavka_broker.replica.leading.isr_proposals import InSyncKeeper
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.serving import fetch_sessions
from kavka_broker.replica.serving.reader import Reader
from kavka_broker.storage.durability import Durability
from tests.sim.teething import Patch, tooth

# --- judged where it is played ----------------------------------------------------------------------------------------


@tooth("DeleteRecords is answered when the leader alone has moved", "", seeds="940029")
def deletion_answered_by_the_leader(patch: Patch) -> None:
    patch.setattr(Partition, "low_watermark", property(lambda self: self.log.log_start_offset))


@tooth("a controlled shutdown does not wait until others have seen who leads", "unheard_handover", 3)
def handover_not_waited_for(patch: Patch) -> None:
    """Once the leaders are decided, every image is taken for new enough."""
    patch.setattr(Sessions, "_handover_seen", lambda _, leaving: leaving.handover_offset is not None)


@tooth("a replica that has moved does not report its directory", "reset", seeds="1 2 3 5 6",
       directories=2, replica_alter_log_dirs_io_max_bytes_per_second=str(2**62))  # fmt: skip
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


# --- at their moments -------------------------------------------------------------------------------------------------


@tooth("laggards stay in the ISR for good", "reset", seeds="6 3", besieged=True)
def laggards_stay(patch: Patch) -> None:
    patch.setattr(LeaderState, "lagging", lambda *_: ())


@tooth("a change of the ISR without an answer counts as refused (KIP-497)", "lost_answer", 3)
def silence_is_a_refusal(patch: Patch) -> None:
    ask = InSyncKeeper._ask

    async def ask_once(self: InSyncKeeper, alter_isr: Any, proposed: Any) -> None:
        async def tried(changes: Any) -> Any:
            try:
                return await alter_isr(changes)
            except BrokerError:
                return [IsrAnswer(ErrorCode.INELIGIBLE_REPLICA) for _ in changes]

        await ask(self, tried, proposed)

    patch.setattr(InSyncKeeper, "_ask", ask_once)


@tooth("a follower cuts where its leader's epoch ends, whatever it has itself (KIP-279)", "short_reigns", 3)
def own_epoch_ignored(patch: Patch) -> None:
    def cut(diverging: Any, _: Any, log_end_offset: int, high_watermark: int) -> int:
        end_offset = high_watermark if diverging.end_offset < 0 else diverging.end_offset
        return min(end_offset, log_end_offset)

    patch.setattr(fetched_batches, "truncation_offset", cut)


@tooth("the quorum's leader counts what it has not synced", "unsynced_decision", 5, is_synced=False)
def unsynced_counts_for_the_quorum(patch: Patch) -> None:
    def move_high_watermark(node: Any, role: Any) -> bool:
        offset = role.replicas.committed(node.voters, node.node_id, node.log.end_offset)
        if not raft_leader.covers_own_epoch(role, offset):
            return False
        role.is_established = True
        return bool(node.commit(offset))

    patch.setattr(raft_leader, "move_high_watermark", move_high_watermark)


@tooth("the quorum's leader commits what is of a former epoch (Raft, figure 8)", "former_decision", 5)
def former_epoch_committed(patch: Patch) -> None:
    patch.setattr(raft_leader, "covers_own_epoch", lambda role, offset: True)


@tooth("a copy takes the place of its log though that was cut while the copy was synced", "cut_while_moving",
       seeds="4 1 2 3 5", directories=2, replica_alter_log_dirs_io_max_bytes_per_second=str(2**62))  # fmt: skip
def copy_not_checked_again(patch: Patch) -> None:
    secure = Moves._secure

    def secure_and_forget(self: Moves, future: Any) -> None:
        secure(self, future)
        for move in self._moves.values():
            if move.future is future:
                move.truncations = move.partition.log.truncations

    patch.setattr(Moves, "_secure", secure_and_forget)


@tooth("a high watermark that a follower does not take counts as heard", "kill", seeds="2 7",
       replica_high_watermark_checkpoint_interval_ms="60000")  # fmt: skip
def watermark_not_taken_is_heard(patch: Patch) -> None:
    def ask_again(self: SessionPartition, position: Any, **_: Any) -> None:
        self.position = position

    patch.setattr(SessionPartition, "ask_again", ask_again)
    patch.setattr(fetch_sessions, "has_diverged", lambda data: False)


@tooth("throttled replication holds back followers that are in sync (KIP-73)", "kill", 2,
       workloads="replication_quotas")  # fmt: skip
def in_sync_followers_held_back(patch: Patch) -> None:
    feed = Reader._feed

    def hold_back(self: Reader, partition: Any, asked: Any, follower: Any, *args: Any, **how: Any) -> Any:
        throttle = self._throttles.of_followers(partition)
        if throttle is not None and throttle.is_exceeded:
            args = (0, False)
        return feed(self, partition, asked, follower, *args, **how)

    patch.setattr(Reader, "_feed", hold_back)
