"""Joining a group.

A first join has no member id. A dynamic member is given one and has to come again with it (KIP-394), so that a join
whose answer was lost leaves no ghost behind. A static member (KIP-345, it names an instance) takes the place of its
predecessor at once, and where the protocol stays the same a stable group does not even rebalance: the answer carries
the generation that runs. From version 9 a returning static leader is told so (`skip_assignment`, KIP-814).

A member that joins again, after a change of its subscription or because it was asked to, makes the group rebalance;
one that repeats a join whose answer it lost gets the same answer again.
"""

from dataclasses import dataclass
from itertools import islice

from kavka_broker.core.group.checks import member_of, require_alive
from kavka_broker.core.group.effects import Effects, Respond, TimerKind, Token
from kavka_broker.core.group.rebalance import (
    complete_if_joined,
    generation_of,
    keep_alive,
    persist,
    prepare,
    prepare_if_possible,
    refuse_waiting,
)
from kavka_broker.core.group.settings import PENDING_MEMBERS_MAX, PROTOCOL_TYPE_CHARACTERS_MAX, GroupSettings
from kavka_broker.core.group.state import ClassicGroup, GroupState, Member, Protocols, Write, said_bytes
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse

__all__ = ["Join", "forget_ids", "growth_bytes", "join"]


@dataclass(frozen=True, slots=True)
class Join:
    """A join as its member sent it, and the id to give the member if it has none."""

    token: Token
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    new_member_id: str
    needs_known_id: bool  # from version 4
    can_skip_assignment: bool  # from version 9


def join(
    group: ClassicGroup,
    command: Join,
    settings: GroupSettings,
    now_ms: int,
    effects: Effects,
    *,
    has_space: bool = True,
) -> None:
    """Let the member join, or answer with an error. `has_space` says whether the group may take `growth_bytes` more."""
    try:
        check(group, command, settings, has_space=has_space)
        if command.member_id:
            join_again(group, command, settings, now_ms, effects)
        else:
            join_first(group, command, settings, now_ms, effects)
    except BrokerError as error:
        member_id = "" if error.code is ErrorCode.GROUP_MAX_SIZE_REACHED else command.member_id
        effects.answer(command.token, JoinGroupResponse(error_code=error.code, member_id=member_id))


def check(group: ClassicGroup, command: Join, settings: GroupSettings, *, has_space: bool) -> None:
    """Check that the member may join this group now. Raises BrokerError."""
    if not settings.session_timeout_min_ms <= command.session_timeout_ms <= settings.session_timeout_max_ms:
        raise BrokerError(ErrorCode.INVALID_SESSION_TIMEOUT)
    if not (has_space and has_room(group, command, settings.members_max)):
        group.pending.pop(command.member_id, None)
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    require_alive(group)
    is_short = len(command.protocol_type) <= PROTOCOL_TYPE_CHARACTERS_MAX  # the group keeps it without members
    if not is_short or not group.supports(command.protocol_type, command.protocols):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def growth_bytes(group: ClassicGroup, command: Join) -> int:
    """How much more the group takes with what the member says of itself now."""
    member = joining_again(group, command)
    before = 0 if member is None else said_bytes(member.instance_id, member.protocols)
    return said_bytes(command.instance_id, command.protocols) - before


def joining_again(group: ClassicGroup, command: Join) -> Member | None:
    return group.members.get(command.member_id or group.instances.get(command.instance_id or "", ""))


def has_room(group: ClassicGroup, command: Join, members_max: int) -> bool:
    """Whether the member may join. Members that have not joined again yet hold no place: they may never come back."""
    member = joining_again(group, command)
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return True
        case GroupState.PREPARING_REBALANCE:
            return (member is not None and member.is_joining) or group.joining_count < members_max
        case _:
            return member is not None or len(group.members) < members_max


def join_first(group: ClassicGroup, command: Join, settings: GroupSettings, now_ms: int, effects: Effects) -> None:
    """Handle a join without a member id."""
    if command.instance_id is not None:
        current_id = group.instances.get(command.instance_id)
        if current_id is not None:
            replace(group, group.members[current_id], command, settings, now_ms, effects)
            return
    elif command.needs_known_id:
        give_id(group, command, effects)
        return
    add(group, command, command.new_member_id, settings, now_ms, effects)


def forget_ids(group: ClassicGroup, count: int, effects: Effects) -> int:
    """Forget so many ids that nobody has joined with, the oldest first: a client that comes with one starts again.
    Returns how many there were.
    """
    oldest_ids = list(islice(group.pending, count))
    for oldest_id in oldest_ids:
        del group.pending[oldest_id]
        effects.stop(TimerKind.SESSION, oldest_id)
    return len(oldest_ids)


def give_id(group: ClassicGroup, command: Join, effects: Effects) -> None:
    """Keep a place for the member for a while; its client joins again with the id of this answer."""
    forget_ids(group, max(0, len(group.pending) + 1 - PENDING_MEMBERS_MAX), effects)
    member_id = command.new_member_id
    assert member_id not in group.members, f"{member_id} is a member, and is given to another"
    group.pending[member_id] = None
    assert len(group.pending) <= PENDING_MEMBERS_MAX, len(group.pending)
    effects.start(TimerKind.SESSION, command.session_timeout_ms, member_id)
    effects.answer(command.token, JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))


def join_again(group: ClassicGroup, command: Join, settings: GroupSettings, now_ms: int, effects: Effects) -> None:
    """Handle a join with a member id."""
    if command.member_id in group.pending and command.instance_id is None:
        add(group, command, command.member_id, settings, now_ms, effects)
        return
    member = member_of(group, command.member_id, command.instance_id)
    is_leader = member.member_id == group.leader_id
    match group.state:
        case GroupState.COMPLETING_REBALANCE if member.protocols == command.protocols:
            repeat(group, member, command, effects, with_members=is_leader)
        case GroupState.STABLE if not is_leader and member.protocols == command.protocols:
            repeat(group, member, command, effects, with_members=False)
        case _:
            update(group, member, command)
            park(group, member, command, effects)
            prepare_if_possible(group, settings, now_ms, effects)
            complete_if_joined(group, now_ms, effects)


def repeat(group: ClassicGroup, member: Member, command: Join, effects: Effects, *, with_members: bool) -> None:
    """Repeat the answer that a member has lost."""
    assert group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE), f"{group.state} has no generation"
    effects.answer(command.token, generation_of(group, member, with_members=with_members))
    keep_alive(member, effects)


def add(
    group: ClassicGroup, command: Join, member_id: str, settings: GroupSettings, now_ms: int, effects: Effects
) -> None:
    member = Member(
        member_id,
        command.instance_id,
        command.client_id,
        command.client_host,
        command.session_timeout_ms,
        command.rebalance_timeout_ms,
        command.protocols,
        is_new=True,
    )
    if not group.members:
        group.protocol_type = command.protocol_type
    group.add(member)
    if group.state is GroupState.PREPARING_REBALANCE and group.is_initial_rebalance:
        group.has_new_member = True
    park(group, member, command, effects)
    prepare_if_possible(group, settings, now_ms, effects)
    complete_if_joined(group, now_ms, effects)


def replace(
    group: ClassicGroup,
    member: Member,
    command: Join,
    settings: GroupSettings,
    now_ms: int,
    effects: Effects,
) -> None:
    """Replace a static member that was restarted: it goes on in the place of its predecessor, which is fenced."""
    old_leader_id, old_id = group.leader_id, member.member_id
    assert command.new_member_id != old_id, f"{old_id} would take its own place"
    refuse_waiting(group, member, ErrorCode.FENCED_INSTANCE_ID, effects)
    effects.stop(TimerKind.SESSION, old_id)
    group.replace_static(member, command.new_member_id)
    assert old_id not in group.members, f"{old_id} is fenced"
    update(group, member, command)
    match group.state:
        case GroupState.STABLE if group.select_protocol() == group.protocol_name:
            response = go_on(group, member, command, old_leader_id)
            assignments = {m.member_id: m.assignment for m in group.members.values()}
            write = Write(answer=Respond(command.token, response), replaced=(member.member_id, old_id))
            persist(group, write, effects, assignments)
            keep_alive(member, effects)
        case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
            # The leader may already assign partitions to the old id: only a new generation gives this member its share.
            park(group, member, command, effects)
            prepare(group, settings, now_ms, effects)
        case _:
            park(group, member, command, effects)
            complete_if_joined(group, now_ms, effects)


def go_on(group: ClassicGroup, member: Member, command: Join, old_leader_id: str | None) -> JoinGroupResponse:
    """Answer a static member that has come back with the running generation. A client that knows `skip_assignment` may
    hear that it leads; an older client would assign, so it hears its predecessor's id as the leader's.
    """
    is_leader = member.member_id == group.leader_id
    assert group.state is GroupState.STABLE, f"{group.group_id}: {group.state} does not just go on"
    response = generation_of(group, member, with_members=is_leader and command.can_skip_assignment)
    if command.can_skip_assignment:
        response.skip_assignment = is_leader
    else:
        response.leader = old_leader_id or ""
    return response


def update(group: ClassicGroup, member: Member, command: Join) -> None:
    assert group.members.get(member.member_id) is member, f"{member.member_id} is no member of {group.group_id}"
    group.change_protocols(member, command.protocols)
    member.session_timeout_ms = command.session_timeout_ms
    member.rebalance_timeout_ms = command.rebalance_timeout_ms
    member.client_id = command.client_id
    member.client_host = command.client_host


def park(group: ClassicGroup, member: Member, command: Join, effects: Effects) -> None:
    """Keep the join until the generation is there. A join of the same member that already waits is out of date: its
    connection is gone, otherwise the member would not ask twice.
    """
    refuse_waiting(group, member, ErrorCode.REBALANCE_IN_PROGRESS, effects)
    assert member.join is None, f"{member.member_id} joins twice at a time"
    member.join = command.token
    assert member.member_id in group.members, f"{member.member_id} waits and is no member of {group.group_id}"
    keep_alive(member, effects)
