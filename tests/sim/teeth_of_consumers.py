"""Planted defects of consumer groups of the new protocol (KIP-848)."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kavka_broker.coordinator.groups import consumer_groups
from kavka_broker.coordinator.groups.consumer_groups import ConsumerCommands, ConsumerGroups
from kavka_broker.coordinator.groups.group_commands import GroupCommands, Heard, Outcome
from kavka_broker.coordinator.groups.member_fencing import MemberFencing
from kavka_broker.core.consumer_group import committing, heartbeat, records
from kavka_broker.core.consumer_group.heartbeat import Change, View
from kavka_broker.core.consumer_group.state import ConsumerGroup, ConsumerMember
from kavka_broker.core.group import image
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kavka_broker.protocol.messages.group.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kavka_broker.protocol.messages.group.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from tests.sim.teething import Patch, tooth


@tooth("a member gets partitions before those that have them have given them up", "pause", 10,
       workloads="consumers", hectic=True)  # fmt: skip
def partitions_before_they_are_given_up(patch: Patch) -> None:
    patch.setattr(View, "owner", lambda self, topic_id, partition: None)


@tooth("an answer to a member does not wait for its records", "kill isolate", 10, workloads="consumers", hectic=True)
def members_are_answered_before_the_commit(patch: Patch) -> None:
    carry_out = GroupCommands._carry_out

    def carry_out_hastily(self: ConsumerCommands, outcome: Outcome[ConsumerGroup, Change]) -> Heard:
        change, _ = carry_out(self, outcome)
        return change, None

    patch.setattr(GroupCommands, "_carry_out", carry_out_hastily)


@tooth("another subscription of a member leaves the group's epoch as it is", "pause", 10,
       workloads="consumers", hectic=True)  # fmt: skip
def subscriptions_leave_the_epoch(patch: Patch) -> None:
    epoch_of = heartbeat._epoch

    def unmoved(view: View, before: ConsumerMember, *details: Any) -> int:
        if before.member_id in view.group.members:
            view = replace(view, member=replace(view.member, topics=before.topics, regex=before.regex))
        return epoch_of(view, before, *details)

    patch.setattr(heartbeat, "_epoch", unmoved)


@tooth("a member that has been fenced is served as if it had not", "kill pause", 10, workloads="consumers", hectic=True)
def fenced_members_are_served(patch: Patch) -> None:
    def any_member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
        return group.members.get(member_id) or ConsumerMember(member_id)

    patch.setattr(heartbeat, "member_of", any_member)
    patch.setattr(heartbeat, "check_epoch", lambda *_: None)


@tooth("a member's record says nothing of what it has yet to give up", "pause", 10, workloads="consumers", hectic=True)
def revoked_partitions_are_not_written(patch: Patch) -> None:
    record_of = records.assigned_record

    def without(group_id: str, member: ConsumerMember) -> KeyedRecord:
        return record_of(group_id, replace(member, revoking={}))

    patch.setattr(heartbeat, "assigned_record", without)


@tooth("a new coordinator forgets what members have yet to give up", "kill isolate", 10,
       workloads="consumers", hectic=True)  # fmt: skip
def revoked_partitions_are_not_read(patch: Patch) -> None:
    replay = records.replay

    def replay_without(groups: dict[str, ConsumerGroup], key: Message, value: Message | None) -> None:
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            value = ConsumerGroupCurrentMemberAssignmentValue(
                value.member_epoch, value.previous_member_epoch, value.state, value.assigned_partitions, []
            )
        replay(groups, key, value)

    patch.setattr(image, "replay_consumer_group", replay_without)


@tooth("a static member's successor has no target", "pause", 10, workloads="consumers", hectic=True)
def successors_have_no_target(patch: Patch) -> None:
    take_place = heartbeat._take_place

    def take_place_without(*details: Any) -> list[KeyedRecord]:
        return [
            record
            for record in take_place(*details)
            if record.value is None or not isinstance(record.key, ConsumerGroupTargetAssignmentMemberKey)
        ]

    patch.setattr(heartbeat, "_take_place", take_place_without)


@tooth("a static member's successor leaves its predecessor in the group", "pause", 10,
       workloads="consumers", hectic=True)  # fmt: skip
def predecessors_stay(patch: Patch) -> None:
    take_place = heartbeat._take_place

    def take_place_beside(*details: Any) -> list[KeyedRecord]:
        return [record for record in take_place(*details) if record.value is not None]

    patch.setattr(heartbeat, "_take_place", take_place_beside)


@tooth("the partitions of a member stay with it when it ends", "pause", 10, workloads="consumers", hectic=True)
def partitions_outlive_their_member(patch: Patch) -> None:
    replay = records.replay

    def replay_keeping(groups: dict[str, ConsumerGroup], key: Message, value: Message | None) -> None:
        if value is not None or not isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            replay(groups, key, value)

    def remove(self: ConsumerGroup, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._forget(replace(member, assigned={}, revoking={}))

    patch.setattr(consumer_groups, "replay", replay_keeping)
    patch.setattr(ConsumerGroup, "remove", remove)


@tooth("a member's session never ends", "pause", 10, workloads="consumers", hectic=True)
def sessions_never_end(patch: Patch) -> None:
    patch.setattr(MemberFencing, "_expired", lambda *_: None)


@tooth("a new coordinator waits for no member's session", "kill", 10, workloads="consumers", hectic=True)
def sessions_end_with_their_coordinator(patch: Patch) -> None:
    def expect_nobody(self: ConsumerGroups) -> Iterable[int]:
        yield 0

    patch.setattr(ConsumerGroups, "expect_members", expect_nobody)


@tooth("a commit in an older epoch is taken for a partition that the member has not had", "pause", 10,
       workloads="consumers", hectic=True)  # fmt: skip
def stale_commits_are_taken(patch: Patch) -> None:
    patch.setattr(committing, "_since", lambda *_: 0)


@tooth("a commit in an older epoch is refused, whoever has had the partition (KIP-1251)", "pause", 10,
       workloads="consumers", hectic=True)  # fmt: skip
def commits_on_their_way_are_refused(patch: Patch) -> None:
    patch.setattr(committing, "_since", lambda member, *_: member.epoch)
