"""Staying in a group and leaving it: heartbeats, departures, sessions that end, and the end of the group itself."""

from collections.abc import Iterable
from dataclasses import dataclass

from kavka_broker.core.group.checks import member_of, require_alive, require_generation
from kavka_broker.core.group.effects import Effects, TimerKind, TimerName
from kavka_broker.core.group.rebalance import (
    complete_if_joined,
    drop,
    join_timer_expired,
    keep_alive,
    prepare_if_possible,
    refuse_waiting,
    sync_timer_expired,
)
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.state import ClassicGroup, GroupState, Member
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["Departure", "bury", "expired", "heartbeat", "leave", "start_sessions"]


@dataclass(frozen=True, slots=True)
class Departure:
    """A member that leaves: by its id, or a static one by its instance (then an operator may have sent it)."""

    member_id: str
    instance_id: str | None = None


def heartbeat(
    group: ClassicGroup, generation: int, member_id: str, instance_id: str | None, effects: Effects
) -> ErrorCode:
    """Start the member's session again; the answer says whether it has to join again."""
    try:
        require_alive(group)
        member = member_of(group, member_id, instance_id)
        require_generation(group, generation)
    except BrokerError as error:
        return error.code
    keep_alive(member, effects)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(
    group: ClassicGroup, departure: Departure, settings: GroupSettings, now_ms: int, effects: Effects
) -> ErrorCode:
    """Take one member out; the group rebalances without it at once instead of after its session."""
    try:
        require_alive(group)
        if departure.member_id in group.pending:
            forget_pending(group, departure, now_ms, effects)
        else:
            remove(group, departing(group, departure), settings, now_ms, effects)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


def forget_pending(group: ClassicGroup, departure: Departure, now_ms: int, effects: Effects) -> None:
    """Give up the place of a member that was given its id and has not joined. Raises BrokerError."""
    assert departure.member_id not in group.members, f"{departure.member_id} has joined, and its place is kept"
    if departure.instance_id is not None:  # a static member is never pending, so the id is another member's
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
    del group.pending[departure.member_id]
    effects.stop(TimerKind.SESSION, departure.member_id)
    complete_if_joined(group, now_ms, effects)


def departing(group: ClassicGroup, departure: Departure) -> Member:
    """The member that leaves. Raises BrokerError."""
    if departure.instance_id is not None and not departure.member_id:
        current_id = group.instances.get(departure.instance_id)
        if current_id is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        assert current_id in group.members, f"{departure.instance_id} is {current_id}, which is no member"
        return group.members[current_id]
    return member_of(group, departure.member_id, departure.instance_id)


def remove(group: ClassicGroup, member: Member, settings: GroupSettings, now_ms: int, effects: Effects) -> None:
    drop(group, member, effects)
    prepare_if_possible(group, settings, now_ms, effects)
    complete_if_joined(group, now_ms, effects)


def expired(group: ClassicGroup, timer: TimerName, settings: GroupSettings, now_ms: int, effects: Effects) -> None:
    """Handle a timer of this group that has expired."""
    match timer.kind:
        case TimerKind.JOIN:
            join_timer_expired(group, settings, now_ms, effects)
        case TimerKind.SYNC:
            sync_timer_expired(group, settings, now_ms, effects)
        case TimerKind.SESSION if timer.member_id in group.pending:
            del group.pending[timer.member_id]
            complete_if_joined(group, now_ms, effects)
        case TimerKind.SESSION if timer.member_id in group.members:
            remove(group, group.members[timer.member_id], settings, now_ms, effects)


def start_sessions(members: Iterable[Member], effects: Effects) -> None:
    """Start the sessions of members read from the log: they have that long to send a sign of life."""
    for member in members:
        assert member.join is None, f"{member.member_id} joins a group that was only just read"
        keep_alive(member, effects)


def bury(group: ClassicGroup, error: ErrorCode, now_ms: int, effects: Effects) -> None:
    """End the group here: it is deleted, or another broker coordinates it. Waiting requests get `error`, and all timers
    of the group are to be stopped.
    """
    for member in group.members.values():
        refuse_waiting(group, member, error, effects)
    for write in group.writes_pending.values():
        if write.answer is not None:
            effects.answer(write.answer.token, type(write.answer.response)(error_code=error))  # type: ignore[call-arg]
    for ticket in list(group.writes_pending):
        group.end_write(ticket)
    if group.state is not GroupState.DEAD:
        group.move_to(GroupState.DEAD, now_ms)
    assert not any(member.is_joining or member.sync for member in group.members.values()), "somebody waits forever"
