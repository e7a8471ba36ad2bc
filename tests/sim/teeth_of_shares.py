"""Planted defects of share groups (KIP-932)."""

from typing import Any

from kavka_broker.coordinator.groups.group_commands import GroupCommands, Outcome, ShareHeard
from kavka_broker.coordinator.share.share_state_client import ReadState, ShareStateClient
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.share.share_partition import Acquisition, ShareLimits, SharePartition
from kavka_broker.core.share.share_states import ShareStates
from kavka_broker.core.share.share_window import Change, OffsetRun
from kavka_broker.core.share.state_batches import RecordState, StateBatch
from kavka_broker.core.share_group import heartbeat
from kavka_broker.core.share_group.heartbeat import ShareChange
from kavka_broker.core.share_group.state import ShareGroup, StatePartitions
from kavka_broker.loop.slices import Work
from tests.sim.teething import Patch, tooth


@tooth("an answer to a share consumer does not wait for its records", "kill isolate", 10,
       workloads="sharers", hectic=True)  # fmt: skip
def share_consumers_are_answered_before_the_commit(patch: Patch) -> None:
    carry_out = GroupCommands._carry_out

    def carry_out_hastily(
        self: GroupCommands[ShareGroup, ShareChange], outcome: Outcome[ShareGroup, ShareChange]
    ) -> ShareHeard:
        change, _ = carry_out(self, outcome)
        return change, None

    patch.setattr(GroupCommands, "_carry_out", carry_out_hastily)


@tooth("partitions are assigned before the share coordinator has their state", "pause", 5,
       workloads="sharers", hectic=True)  # fmt: skip
def shares_are_assigned_without_a_state(patch: Patch) -> None:
    def all_of(states: StatePartitions | None, names: Any, topics: Any) -> dict[bytes, frozenset[int]]:
        known = [topic for topic in map(topics.get, sorted(names)) if topic is not None]
        return {topic.topic_id: frozenset(topic.partitions) for topic in known}

    patch.setattr(heartbeat, "_assignable", all_of)


@tooth("a new coordinator forgets share groups with members", "kill isolate", 5, workloads="sharers", hectic=True)
def share_groups_with_members_are_not_read(patch: Patch) -> None:
    finish = GroupImage.finish_loading

    def forgetful(self: GroupImage) -> Any:
        yield from finish(self)
        for group_id, group in list(self.share_groups.items()):
            if group.members:
                del self.share_groups[group_id]

    patch.setattr(GroupImage, "finish_loading", forgetful)


@tooth("a new coordinator forgets which states are initialized", "kill isolate", 5, workloads="sharers", hectic=True)
def initialized_states_are_not_read(patch: Patch) -> None:
    finish = GroupImage.finish_loading

    def forgetful(self: GroupImage) -> Any:
        yield from finish(self)
        for group in self.share_groups.values():
            group.put_states(None)

    patch.setattr(GroupImage, "finish_loading", forgetful)


@tooth("an acceptance is acknowledged before the share coordinator has it", "kill isolate", 10,
       workloads="sharers", hectic=True)  # fmt: skip
def acceptances_are_not_written(patch: Patch) -> None:
    async def not_written(self: ShareStateClient, group_id: str, place: Any, state: Any) -> None:
        return None

    patch.setattr(ShareStateClient, "write", not_written)


@tooth("a new leader of a share partition forgets what was accepted", "kill isolate", 10,
       workloads="sharers", hectic=True)  # fmt: skip
def accepted_records_are_not_read(patch: Patch) -> None:
    read = ShareStateClient.read

    async def without_batches(self: ShareStateClient, group_id: str, place: Any, leader_epoch: int) -> ReadState:
        return (await read(self, group_id, place, leader_epoch))._replace(batches=[])

    patch.setattr(ShareStateClient, "read", without_batches)


@tooth("a lock ends with the first one that does", "pause", 10, workloads="sharers", hectic=True)
def locks_end_together(patch: Patch) -> None:
    expire = SharePartition.expire

    def expire_all(self: SharePartition, now_ms: float, limits: ShareLimits) -> list[StateBatch]:
        return expire(self, now_ms + limits.lock_ms, limits)

    patch.setattr(SharePartition, "expire", expire_all)


@tooth("records are given out that another member has", "pause", 5, workloads="sharers", hectic=True)
def locked_records_are_free(patch: Patch) -> None:
    def is_free(run: OffsetRun) -> bool:
        return run.state in (RecordState.AVAILABLE, RecordState.ACQUIRED) and run.pending is None

    patch.setattr(OffsetRun, "is_free", property(is_free))


@tooth("the end of a session releases what other members have", "pause", 10, workloads="sharers", hectic=True)
def sessions_release_all(patch: Patch) -> None:
    def release(self: SharePartition, member: str, limits: ShareLimits) -> Change:
        change = Change()
        for run in self.runs:
            if run.is_locked:
                run.mark(self._released(run, limits), change)
        return change

    patch.setattr(SharePartition, "release", release)


@tooth("a second delivery does not count", "pause", 5, workloads="sharers", hectic=True)
def redeliveries_do_not_count(patch: Patch) -> None:
    lock = Acquisition.lock

    def lock_without_counting(self: Acquisition, run: OffsetRun) -> None:
        count = run.count
        lock(self, run)
        run.count = max(count, 1)

    patch.setattr(Acquisition, "lock", lock_without_counting)


@tooth("a group leaves released records behind", "pause", 5, workloads="sharers", hectic=True)
def released_records_are_left_behind(patch: Patch) -> None:
    def is_settled(run: OffsetRun) -> bool:
        return run.pending is None and (run.state.is_terminal or (run.state is RecordState.AVAILABLE and run.count > 0))

    patch.setattr(OffsetRun, "is_settled", property(is_settled))


@tooth("a rejected record is as one that was released", "pause", 5, workloads="sharers", hectic=True)
def rejected_records_come_again(patch: Patch) -> None:
    mark = SharePartition._mark

    def mark_released(self: SharePartition, run: OffsetRun, member: str, kind: int, *others: Any) -> None:
        mark(self, run, member, 2 if kind == 3 else kind, *others)

    patch.setattr(SharePartition, "_mark", mark_released)


@tooth("the log of share groups is pruned up to its newest snapshot", "pause", 10, workloads="sharers", hectic=True,
       share_coordinator_state_topic_prune_interval_ms="1000",
       share_coordinator_snapshot_update_records_per_snapshot="20")  # fmt: skip
def needed_snapshots_are_pruned(patch: Patch) -> None:
    def newest(self: ShareStates) -> Work[int | None]:
        yield from ()
        return max((state.snapshot_offset for state in self.by_key.values()), default=None)

    patch.setattr(ShareStates, "lowest_offset", newest)


@tooth("a member may accept what another member has", "pause", 10, workloads="sharers", hectic=True)
def foreign_records_are_accepted(patch: Patch) -> None:
    mark = SharePartition._mark

    def mark_as_holder(self: SharePartition, run: OffsetRun, member: str, *others: Any) -> None:
        mark(self, run, run.member if run.is_locked else member, *others)

    patch.setattr(SharePartition, "_mark", mark_as_holder)
