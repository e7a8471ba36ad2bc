"""Planted defects of the sort that somebody makes who does not know the code well.

Most of those whose bound is above ten seeds are found as fast as others, but by a cluster that does not settle: that
takes a run to its end, and has no place in every `make test`.
"""

from collections.abc import Iterable
from typing import Any

from kavka_broker.coordinator.groups.group_loading import Latest
from kavka_broker.core.cleaning.transactions import CleanedTransactions
from kavka_broker.core.group import rebalance
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.core.metadata.decide import partition_change
from kavka_broker.core.metadata.image.producer_ids import ProducerIds
from kavka_broker.core.partition.leader import LeaderState
from kavka_broker.core.partition.leader_epochs import LeaderEpochs
from kavka_broker.core.raft import election
from kavka_broker.replica.following import fetched_batches
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.purgatory import OffsetWaiters
from kavka_broker.replica.serving.fetch_sessions import FetchSession
from kavka_broker.storage import checkpoints, log_directory, retention
from kavka_broker.storage.durability import Durability
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.log_truncation import Truncation
from kavka_broker.storage.open_logs import OpenLogs
from kavka_broker.storage.producer_files import ProducerFiles
from kavka_broker.storage.producer_snapshot import ProducerSnapshots
from kavka_broker.storage.segment import Segment
from tests.sim.teething import Patch, tooth

# --- logs -------------------------------------------------------------------------------------------------------------


@tooth("a follower keeps the record at which its log parts from its leader's", "", 20)
def truncation_one_too_late(patch: Patch) -> None:
    plan = Truncation.plan_cut
    patch.setattr(Truncation, "plan_cut", lambda self, offset: plan(self, offset + 1))


@tooth("epochs that began in what was cut off stay", "", 20)
def epochs_outlive_their_records(patch: Patch) -> None:
    patch.setattr(LeaderEpochs, "truncate_from_end", lambda self, end_offset: False)


@tooth("producers are not worked out again where a log is cut", "kill isolate", 15)
def producers_outlive_their_records(patch: Patch) -> None:
    patch.setattr(ProducerFiles, "walked", lambda self: self.states)


@tooth("a snapshot of producers lacks the newest of them", "kill controlled_restart", 5)
def snapshot_lacks_a_producer(patch: Patch) -> None:
    write = ProducerSnapshots.write

    def write_less(self: Any, offset: int, producers: Iterable[Any], *rest: Any, **how: Any) -> str:
        return write(self, offset, [*producers][:-1], *rest, **how)

    patch.setattr(ProducerSnapshots, "write", write_less)


@tooth("a segment that was rolled is not synced any more", "kill", 5, is_synced=True)
def rolled_segments_not_synced(patch: Patch) -> None:
    sync = Durability._sync_segments

    def sync_active(self: Any, segments: list[Segment], **how: Any) -> None:
        sync(self, segments[-1:], **how)

    patch.setattr(Durability, "_sync_segments", sync_active)


@tooth("recovery points are written down ahead of the sync", "kill slow_disk", 8, is_synced=False)
def recovery_points_ahead(patch: Patch) -> None:
    def points(self: LogDirectory, logs: Iterable[Log], kept: Any) -> None:
        ends = {log.name: log.log_end_offset for log in logs}
        self.write(checkpoints.RECOVERY_POINTS, log_directory._only(self.recovery_points, kept) | ends)

    patch.setattr(LogDirectory, "_write_recovery_points", points)


@tooth("a follower does not follow the start of its leader's log", "", 20)
def deleted_records_not_replicated(patch: Patch) -> None:
    append = fetched_batches.append

    def append_only(partition: Partition, data: Any, now_ms: int) -> None:
        data.log_start_offset = -1
        append(partition, data, now_ms)

    patch.setattr(fetched_batches, "append", append_only)


@tooth("retention deletes what is not committed yet", "isolate kill", 20, workloads="trimming")
def retention_above_the_high_watermark(patch: Patch) -> None:
    count = retention.expired_count
    patch.setattr(retention, "expired_count", lambda *rest, **how: count(*rest, **(how | {"up_to": 2**62})))


@tooth("a replica takes the end of its log for its high watermark when it starts", "kill", 15)
def high_watermark_from_the_end(patch: Patch) -> None:
    patch.setattr(OpenLogs, "high_watermark", lambda self, topic, index: self.get(topic, index).log_end_offset)


# --- replication ------------------------------------------------------------------------------------------------------


@tooth("whoever waits for the high watermark is woken one offset too late", "", 20)
def wake_up_lost(patch: Patch) -> None:
    reached = OffsetWaiters.reached
    patch.setattr(OffsetWaiters, "reached", lambda self, offset: reached(self, offset - 1))


@tooth("a fetch session keeps what its client has given up", "", 20)
def session_forgets_nothing(patch: Patch) -> None:
    update = FetchSession.update

    def keep(self: FetchSession, request: Any, prepared: Any = None) -> Any:
        request.forgotten_topics_data = []
        return update(self, request, prepared)

    patch.setattr(FetchSession, "update", keep)


@tooth("a follower that fetches comes into the ISR wherever its log ends", "kill pause", 5)
def isr_expands_unseen(patch: Patch) -> None:
    def joining(self: LeaderState, high_watermark: int, end_offset: int, eligible: Any, now_ms: float) -> Any:
        if self.pending is not None:
            return ()
        return tuple(
            broker_id
            for broker_id, follower in self.followers.items()
            if broker_id not in self.isr
            and now_ms - follower.contact.fetched_ms <= self.lag_ms_max
            and self._is_eligible(broker_id, eligible)
        )

    patch.setattr(LeaderState, "joining", joining)


@tooth("who stands by as eligible leader stays so when enough are in sync again", "kill pause", 5)
def eligible_never_cleared(patch: Patch) -> None:
    patch.setattr(partition_change, "_has_enough", lambda state, rules: False)


# --- the quorum -------------------------------------------------------------------------------------------------------


@tooth("a voter gives its vote whatever the candidate's log lacks", "kill isolate", 10)
def vote_for_a_shorter_log(patch: Patch) -> None:
    may_vote_for = election.may_vote_for

    def may(member: Any, asked: Any) -> bool:
        asked.last_offset_epoch, asked.last_offset = 2**31 - 1, 2**62
        return may_vote_for(member, asked)

    patch.setattr(election, "may_vote_for", may)


@tooth(
    "a snapshot of the metadata lacks the producer ids that were given out",
    "kill controlled_restart kill_all",
    20,
    metadata_log_max_record_bytes_between_snapshots="2000",
)
def snapshot_lacks_producer_ids(patch: Patch) -> None:
    patch.setattr(ProducerIds, "records", lambda self: iter(()))


# --- clients ----------------------------------------------------------------------------------------------------------


@tooth("the leader of a group does not hear of the member that came last", "kill isolate", 20, workloads="groups")
def member_lost(patch: Patch) -> None:
    members_of = rebalance.members_of

    def members(group: ClassicGroup) -> Any:
        all_of_them = members_of(group)
        return all_of_them[:-1] if len(all_of_them) > 1 else all_of_them

    patch.setattr(rebalance, "members_of", members)


@tooth("a coordinator that loads its groups passes over tombstones", "kill controlled_restart", 20, workloads="groups")
def tombstones_not_loaded(patch: Patch) -> None:
    keep = Latest._keep
    patch.setattr(
        Latest, "_keep", lambda self, records: keep(self, [record for record in records if record.value is not None])
    )


@tooth(
    "a cleaning takes the marker of a transaction whose records stay",
    "kill controlled_restart",
    20,
    workloads="transactions",
)
def markers_go_too_early(patch: Patch) -> None:
    goes = CleanedTransactions.marker_goes

    def go(self: CleanedTransactions, *args: Any, **how: Any) -> bool:
        goes(self, *args, **how)
        return True

    patch.setattr(CleanedTransactions, "marker_goes", go)
