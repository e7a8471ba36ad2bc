"""Planted defects of streams groups (KIP-1071)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from kavka_broker.coordinator.groups.group_commands import GroupCommands, Outcome, StreamsHeard
from kavka_broker.coordinator.groups.member_fencing import MemberFencing
from kavka_broker.coordinator.groups.streams_groups import StreamsGroups
from kavka_broker.core.group import image
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.streams_group import assignor, committing, heartbeat, reconciliation, records, standbys
from kavka_broker.core.streams_group.checks import StreamsHeartbeat
from kavka_broker.core.streams_group.configured_topology import ConfiguredTopology
from kavka_broker.core.streams_group.heartbeat import StreamsChange
from kavka_broker.core.streams_group.processes import Processes
from kavka_broker.core.streams_group.state import StreamsGroup, StreamsMember
from kavka_broker.core.streams_group.tasks import NO_TASKS
from kavka_broker.core.streams_group.topology import Topology
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from kavka_broker.protocol.messages.group.streams_group_metadata_key import StreamsGroupMetadataKey
from kavka_broker.protocol.messages.group.streams_group_topology_value import StreamsGroupTopologyValue
from tests.sim.teething import Patch, tooth


@tooth("a member gets tasks before those that run them have given them up", "pause", 10,
       workloads="streams", hectic=True)  # fmt: skip
def tasks_before_they_are_given_up(patch: Patch) -> None:
    patch.setattr(reconciliation, "_free_to_run", lambda group, member: lambda part, partition: True)


@tooth("a standby comes to a process that still runs its task", "pause", 10, workloads="streams", hectic=True,
       group_streams_num_standby_replicas="1")  # fmt: skip
def standbys_beside_their_active_task(patch: Patch) -> None:
    patch.setattr(reconciliation, "_free_to_copy", lambda group, member: lambda part, partition: True)


@tooth("an answer to a stream thread does not wait for its records", "kill isolate", 10,
       workloads="streams", hectic=True)  # fmt: skip
def stream_threads_are_answered_before_the_commit(patch: Patch) -> None:
    carry_out = GroupCommands._carry_out

    def carry_out_hastily(
        self: GroupCommands[StreamsGroup, StreamsChange], outcome: Outcome[StreamsGroup, StreamsChange]
    ) -> StreamsHeard:
        change, _ = carry_out(self, outcome)
        return change, None

    patch.setattr(GroupCommands, "_carry_out", carry_out_hastily)


@tooth("a stream thread that has been fenced is served as if it had not", "kill pause", 10,
       workloads="streams", hectic=True)  # fmt: skip
def fenced_threads_are_served(patch: Patch) -> None:
    def any_member(group: StreamsGroup, member_id: str) -> StreamsMember:
        return group.members.get(member_id) or StreamsMember(member_id)

    patch.setattr(heartbeat, "member_of", any_member)
    patch.setattr(heartbeat, "check_epoch", lambda *_: None)


@tooth("a stream thread's record says nothing of what it has yet to give up", "pause", 10,
       workloads="streams", hectic=True)  # fmt: skip
def revoked_tasks_are_not_written(patch: Patch) -> None:
    record_of = records.assigned_record

    def without(group_id: str, member: StreamsMember) -> KeyedRecord:
        return record_of(group_id, replace(member, revoking=NO_TASKS))

    patch.setattr(heartbeat, "assigned_record", without)


@tooth("a new coordinator forgets which tasks have yet to be given up", "kill isolate", 10,
       workloads="streams", hectic=True)  # fmt: skip
def revoked_tasks_are_not_read(patch: Patch) -> None:
    replay = records.replay

    def replay_without(groups: dict[str, StreamsGroup], key: Message, value: Message | None) -> None:
        if isinstance(value, StreamsGroupCurrentMemberAssignmentValue):
            value.active_tasks_pending_revocation = []
        replay(groups, key, value)

    patch.setattr(image, "replay_streams_group", replay_without)


@tooth("a new coordinator forgets the topology", "kill isolate", 10, workloads="streams", hectic=True)
def topologies_are_not_read(patch: Patch) -> None:
    replay = records.replay

    def replay_without(groups: dict[str, StreamsGroup], key: Message, value: Message | None) -> None:
        if not isinstance(value, StreamsGroupTopologyValue):
            replay(groups, key, value)

    patch.setattr(image, "replay_streams_group", replay_without)


@tooth("a new coordinator forgets streams groups with members", "kill isolate", 10, workloads="streams", hectic=True)
def streams_groups_with_members_are_not_read(patch: Patch) -> None:
    finish = GroupImage.finish_loading

    def forgetful(self: GroupImage) -> Any:
        yield from finish(self)
        for group_id, group in list(self.streams_groups.items()):
            if group.members:
                del self.streams_groups[group_id]

    patch.setattr(GroupImage, "finish_loading", forgetful)


@tooth("the session of a stream thread never ends", "pause", 10, workloads="streams", hectic=True)
def sessions_of_threads_never_end(patch: Patch) -> None:
    patch.setattr(MemberFencing, "_expired", lambda *_: None)


@tooth("a stream thread may keep forever what it has to give up", "pause", 10, workloads="streams", hectic=True)
def revocations_have_no_end(patch: Patch) -> None:
    patch.setattr(StreamsGroups, "_expect_revocation", lambda *_: None)


@tooth("a new coordinator waits for no stream thread's session", "kill", 10, workloads="streams", hectic=True)
def sessions_of_threads_end_with_their_coordinator(patch: Patch) -> None:
    def expect_nothing(self: StreamsGroups) -> Iterable[int]:
        yield 0

    patch.setattr(StreamsGroups, "expect_members", expect_nothing)


@tooth("the end of a stream thread leaves the group's epoch as it is", "pause", 10, workloads="streams", hectic=True)
def ends_leave_the_epoch(patch: Patch) -> None:
    fence = heartbeat.fence

    def fence_without(group: StreamsGroup, member: StreamsMember) -> StreamsChange:
        change = fence(group, member)
        change.records = [record for record in change.records if not isinstance(record.key, StreamsGroupMetadataKey)]
        return change

    patch.setattr(heartbeat, "fence", fence_without)


@tooth("a topology that is configured is not looked at again when topics change", "pause", 10,
       workloads="streams", hectic=True)  # fmt: skip
def topologies_are_configured_once(patch: Patch) -> None:
    configured = heartbeat._configured

    def once(group: StreamsGroup, topology: Topology, around: Any, change: StreamsChange) -> ConfiguredTopology:
        return group.configured or configured(group, topology, around, change)

    patch.setattr(heartbeat, "_configured", once)


@tooth("a standby is assigned to the process of its active task", "pause", 10, workloads="streams", hectic=True,
       group_streams_num_standby_replicas="1")  # fmt: skip
def standbys_are_placed_anywhere(patch: Patch) -> None:
    def anywhere(processes: Processes, active: Sequence[int], stateful: Sequence[int], *_: Any) -> list[list[int]]:
        members = len(processes.of_member)
        return [[task % members] if task in stateful and members > 1 else [] for task in range(len(active))]

    patch.setattr(assignor, "place_standbys", anywhere)


@tooth("a task has no standby where the first process that is tried runs it (as in KAFKA-20899)", "pause", 10,
       workloads="streams", hectic=True, group_streams_num_standby_replicas="1")  # fmt: skip
def standbys_are_given_up_early(patch: Patch) -> None:
    place = standbys.place_standbys

    def lazily(processes: Processes, active: Sequence[int], stateful: Sequence[int], *rest: Any) -> list[list[int]]:
        first = [task for task in stateful if processes.of_member[active[task]] != 0]
        return place(processes, active, first, *rest)

    patch.setattr(assignor, "place_standbys", lazily)


@tooth("a stream thread that has left is a member again when it heartbeats", "pause lost_answer", 10,
       workloads="streams", hectic=True)  # fmt: skip
def zombies_come_back(patch: Patch) -> None:
    sender = heartbeat._sender

    def believing(group: StreamsGroup, beat: StreamsHeartbeat) -> tuple[StreamsMember, bool]:
        if beat.joins or beat.member_id in group.members:
            return sender(group, beat)
        return StreamsMember(beat.member_id, epoch=beat.epoch), False

    patch.setattr(heartbeat, "_sender", believing)


@tooth("an offset of a stream thread that is no member any more is taken", "pause", 10,
       workloads="streams", hectic=True)  # fmt: skip
def offsets_of_zombies_are_taken(patch: Patch) -> None:
    check = committing.check_committer

    def only_members(group: StreamsGroup, epoch: int, member_id: str, version: int, places: Any) -> None:
        if member_id in group.members:
            check(group, epoch, member_id, version, places)

    patch.setattr(committing, "check_committer", only_members)


@tooth("an offset is taken in any epoch that its stream thread was in", "pause", 40, workloads="streams", hectic=True)
def offsets_of_any_epoch_are_taken(patch: Patch) -> None:
    patch.setattr(committing, "_since", lambda member, part, partition: 0)


@tooth("an offset is taken in the epoch of its stream thread alone, and not in earlier ones (as before KIP-1251)",
       "pause lost_answer", 10, workloads="streams", hectic=True)  # fmt: skip
def offsets_of_earlier_epochs_are_refused(patch: Patch) -> None:
    patch.setattr(committing, "_since", lambda member, part, partition: member.epoch)
