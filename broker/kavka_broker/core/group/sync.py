"""Handing out assignments.

The leader's sync carries everybody's assignment. It is written to the log first; when it is there the group is Stable
and every sync that waits is answered. A follower's sync before that waits, one after it is answered at once. If the
write fails the assignment is void and the group rebalances. A write that comes back when the group has moved on
changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kavka_broker.core.group.checks import member_of, require_alive, require_generation
from kavka_broker.core.group.effects import Effects, Respond, TimerKind, Token
from kavka_broker.core.group.rebalance import (
    answer_sync,
    keep_alive,
    persist,
    prepare,
    refuse_syncs,
)
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.state import ClassicGroup, GroupState, Member, Write
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse

__all__ = ["Sync", "persisted", "sync"]


@dataclass(frozen=True, slots=True)
class Sync:
    """A sync as its member sent it; `assignments` count only if the member is the leader."""

    token: Token
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None  # from version 5, otherwise None: not checked
    protocol_name: str | None
    assignments: Mapping[str, bytes]


def sync(group: ClassicGroup, command: Sync, now_ms: int, effects: Effects) -> None:
    """Let the member wait for its assignment or give it, or answer with an error."""
    try:
        member = check(group, command)
    except BrokerError as error:
        effects.answer(command.token, SyncGroupResponse(error_code=error.code))
        return
    saw_sync(group, member, effects)
    assert group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE), f"{group.state} assigns nothing"
    answer_sync(group, member, ErrorCode.REBALANCE_IN_PROGRESS, effects)  # an older sync of this member, out of date
    assert member.sync is None, f"{member.member_id} waits for two assignments"
    member.sync = command.token
    if group.state is GroupState.STABLE:
        answer_sync(group, member, ErrorCode.NONE, effects)
        return
    keep_alive(member, effects)
    if member.member_id == group.leader_id and not is_being_written(group):
        assignments = {member_id: command.assignments.get(member_id, b"") for member_id in group.members}
        persist(group, Write(generation=group.generation, assignments=assignments), effects, assignments)


def check(group: ClassicGroup, command: Sync) -> Member:
    """The member that sent the sync. Raises BrokerError where it may not sync now."""
    require_alive(group)
    member = member_of(group, command.member_id, command.instance_id)
    require_generation(group, command.generation)
    if command.protocol_type not in (None, group.protocol_type):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if command.protocol_name not in (None, group.protocol_name):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)
    assert group.state is not GroupState.EMPTY, f"{group.group_id}: an empty group with a member"
    return member


def is_being_written(group: ClassicGroup) -> bool:
    """Whether the leader has handed in this generation's assignment before; the first one counts."""
    return any(write.generation == group.generation for write in group.writes_pending.values())


def saw_sync(group: ClassicGroup, member: Member, effects: Effects) -> None:
    if member.member_id in group.unsynced:
        del group.unsynced[member.member_id]
        if not group.unsynced:
            effects.stop(TimerKind.SYNC)


def persisted(
    group: ClassicGroup,
    ticket: int,
    error: ErrorCode,
    settings: GroupSettings,
    now_ms: int,
    effects: Effects,
) -> None:
    """Go on after a record of the group was written to the log, or has failed."""
    write = group.end_write(ticket)
    if write is None:  # the group was buried meanwhile
        return
    if write.answer is not None:
        finish_replacement(group, write, write.answer, error, effects)
    is_current = group.state is GroupState.COMPLETING_REBALANCE and write.generation == group.generation
    if write.generation is None or not is_current:
        return
    if error is ErrorCode.NONE and group.members.keys() != write.assignments.keys():
        # The record of a static member's new id was not written, and the member has its former id again.
        error = ErrorCode.REBALANCE_IN_PROGRESS
    if error is not ErrorCode.NONE:
        refuse_syncs(group, error, effects)
        prepare(group, settings, now_ms, effects)
        return
    group.move_to(GroupState.STABLE, now_ms)
    for member in group.members.values():
        group.assign(member, write.assignments[member.member_id])
        answer_sync(group, member, ErrorCode.NONE, effects)


def finish_replacement(group: ClassicGroup, write: Write, answer: Respond, error: ErrorCode, effects: Effects) -> None:
    """Finish a static member's new id; without a record of it, the old id would come back at the next start."""
    assert write.replaced is not None
    if error is ErrorCode.NONE:
        effects.append(answer)
        return
    new_id, old_id = write.replaced
    effects.answer(answer.token, JoinGroupResponse(error_code=error))
    member = group.members.get(new_id)
    if member is not None:
        effects.stop(TimerKind.SESSION, new_id)
        group.replace_static(member, old_id)
        keep_alive(member, effects)
