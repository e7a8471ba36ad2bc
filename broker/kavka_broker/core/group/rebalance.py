"""How a group goes from one generation to the next.

    prepare   all members have to join again; those that wait for an assignment get REBALANCE_IN_PROGRESS
    complete  all have joined, or the time is over: members that have not joined are dropped, static ones stay; a
              leader and a protocol are chosen, every join that waits is answered with the new generation
    sync      the leader hands in everybody's assignment (`sync.py`)

The first members of an empty group wait `group.initial.rebalance.delay.ms`, and each newcomer prolongs that, so that
a fleet that starts together gets one generation and not one per process. At most the rebalance timeout is waited.
"""

from kavka_broker.core.group.effects import Effects, TimerKind
from kavka_broker.core.group.persistence import record_of
from kavka_broker.core.group.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from kavka_broker.core.group.state import ClassicGroup, GroupState, Member, Write
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse

__all__ = [
    "JOINABLE",
    "answer_join",
    "answer_sync",
    "complete",
    "complete_if_joined",
    "drop",
    "generation_of",
    "join_timer_expired",
    "keep_alive",
    "members_of",
    "persist",
    "prepare",
    "prepare_if_possible",
    "refuse_syncs",
    "refuse_waiting",
    "sync_timer_expired",
]

JOINABLE = frozenset({GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE})
"""The states in which a rebalance can begin; in PreparingRebalance it has begun."""


def prepare_if_possible(group: ClassicGroup, settings: GroupSettings, now_ms: int, effects: Effects) -> None:
    if group.state in JOINABLE:
        prepare(group, settings, now_ms, effects)


def prepare(group: ClassicGroup, settings: GroupSettings, now_ms: int, effects: Effects) -> None:
    """Begin a rebalance."""
    assert group.state in JOINABLE, f"{group.group_id}: {group.state} does not begin a rebalance"
    if group.state is GroupState.COMPLETING_REBALANCE:
        refuse_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, effects)
    forget_unsynced(group, effects)
    group.is_initial_rebalance = group.state is GroupState.EMPTY
    group.move_to(GroupState.PREPARING_REBALANCE, now_ms)
    if group.is_initial_rebalance:
        delay_ms = settings.initial_rebalance_delay_ms
        group.has_new_member = False
        group.initial_delay_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        effects.start(TimerKind.JOIN, delay_ms)
    elif not group.has_all_joined:
        effects.start(TimerKind.JOIN, group.rebalance_timeout_ms)
    else:
        complete(group, now_ms, effects)


def join_timer_expired(group: ClassicGroup, settings: GroupSettings, now_ms: int, effects: Effects) -> None:
    """Go on after the initial delay or the rebalance timeout."""
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    if group.is_initial_rebalance and group.has_new_member and group.initial_delay_left_ms:
        delay_ms = min(settings.initial_rebalance_delay_ms, group.initial_delay_left_ms)
        group.has_new_member = False
        group.initial_delay_left_ms -= delay_ms
        assert group.initial_delay_left_ms >= 0, group.initial_delay_left_ms
        effects.start(TimerKind.JOIN, delay_ms)
    else:
        complete(group, now_ms, effects)


def complete_if_joined(group: ClassicGroup, now_ms: int, effects: Effects) -> None:
    """Complete as soon as all members have joined, except in the initial delay, which waits for more of them."""
    if group.state is GroupState.PREPARING_REBALANCE and not group.is_initial_rebalance and group.has_all_joined:
        complete(group, now_ms, effects)


def complete(group: ClassicGroup, now_ms: int, effects: Effects) -> None:
    """End the joining: the members that have joined are a new generation."""
    assert group.state is GroupState.PREPARING_REBALANCE
    assert not group.unsynced, f"{group.group_id}: {[*group.unsynced]} wait for an assignment of the last generation"
    effects.stop(TimerKind.JOIN)
    for member in list(group.members.values()):
        if not member.is_joining and member.instance_id is None:
            drop(group, member, effects)
    if group.members and not elect_leader(group):
        # Only static members are left, and none has come back yet: each may still do so until its session ends.
        effects.start(TimerKind.JOIN, group.rebalance_timeout_ms)
        return
    group.generation += 1
    group.is_initial_rebalance = False
    if not group.members:
        group.protocol_name = None
        group.leader_id = None
        group.move_to(GroupState.EMPTY, now_ms)
        persist(group, Write(), effects, {})
        return
    group.protocol_name = group.select_protocol()
    group.move_to(GroupState.COMPLETING_REBALANCE, now_ms)
    assert group.leader_id in group.members, f"{group.group_id}: {group.leader_id} leads and is no member"
    for member in group.members.values():
        member.is_new = False
        answer_join(group, member, effects)
        group.unsynced[member.member_id] = None
    effects.start(TimerKind.SYNC, group.rebalance_timeout_ms)


def elect_leader(group: ClassicGroup) -> bool:
    """Keep the leader if it has joined, otherwise take the first member that has. False where none has joined."""
    assert group.members, f"{group.group_id}: nobody can lead"
    leader = group.members.get(group.leader_id or "")
    if leader is not None and leader.is_joining:
        return True
    joined = next((member for member in group.members.values() if member.is_joining), None)
    if joined is not None:
        group.leader_id = joined.member_id
    return joined is not None


def sync_timer_expired(group: ClassicGroup, settings: GroupSettings, now_ms: int, effects: Effects) -> None:
    """Drop members that have the generation but never asked for their assignment; the group goes on without them."""
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.unsynced:
        return
    assert group.unsynced.keys() <= group.members.keys(), f"{[*group.unsynced]} are no members of {group.group_id}"
    for member_id in list(group.unsynced):
        drop(group, group.members[member_id], effects)
    prepare(group, settings, now_ms, effects)


def drop(group: ClassicGroup, member: Member, effects: Effects) -> None:
    """Take a member out; its waiting requests are answered with UNKNOWN_MEMBER_ID."""
    assert group.members.get(member.member_id) is member, f"{member.member_id} is another member of {group.group_id}"
    refuse_waiting(group, member, ErrorCode.UNKNOWN_MEMBER_ID, effects)
    effects.stop(TimerKind.SESSION, member.member_id)
    group.remove(member.member_id)


def refuse_waiting(group: ClassicGroup, member: Member, error: ErrorCode, effects: Effects) -> None:
    """Answer what this member has waiting with an error."""
    if member.join is not None:
        token, member.join = member.join, None
        effects.answer(token, JoinGroupResponse(error_code=error, member_id=member.member_id))
    answer_sync(group, member, error, effects)
    assert member.join is None, f"{member.member_id} waits for a join that was refused"
    assert member.sync is None, f"{member.member_id} waits for a sync that was refused"


def keep_alive(member: Member, effects: Effects) -> None:
    """Start the session of a member again after a sign of life. While one of its requests waits it cannot send any,
    and its session stands still.
    """
    if member.is_new:
        effects.start(TimerKind.SESSION, NEW_MEMBER_JOIN_TIMEOUT_MS, member.member_id)
    elif member.is_joining or member.sync is not None:
        effects.stop(TimerKind.SESSION, member.member_id)
    else:
        effects.start(TimerKind.SESSION, member.session_timeout_ms, member.member_id)


def answer_join(group: ClassicGroup, member: Member, effects: Effects) -> None:
    """Answer a waiting join with the generation; the leader also gets the list of members, because it assigns."""
    assert group.state is GroupState.COMPLETING_REBALANCE, f"{group.group_id}: {group.state} has no new generation"
    if member.join is None:
        return
    token, member.join = member.join, None
    is_leader = member.member_id == group.leader_id
    effects.answer(token, generation_of(group, member, with_members=is_leader))
    keep_alive(member, effects)


def generation_of(group: ClassicGroup, member: Member, *, with_members: bool) -> JoinGroupResponse:
    assert group.protocol_name is not None
    assert member.member_id in group.members, f"{member.member_id} is no member of {group.group_id}"
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=members_of(group) if with_members else [],
    )


def members_of(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    protocol = group.protocol_name or ""
    return [
        JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata(protocol))
        for member in group.members.values()
    ]


def answer_sync(group: ClassicGroup, member: Member, error: ErrorCode, effects: Effects) -> None:
    """Answer a waiting sync with the assignment, or with the error that takes its place."""
    if member.sync is None:
        return
    token, member.sync = member.sync, None
    if error is ErrorCode.NONE:
        assert group.state is GroupState.STABLE, f"{group.group_id}: {group.state} has no assignment to give"
        response = SyncGroupResponse(
            protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
        )
    else:
        response = SyncGroupResponse(error_code=error)
    effects.answer(token, response)
    keep_alive(member, effects)


def refuse_syncs(group: ClassicGroup, error: ErrorCode, effects: Effects) -> None:
    """Refuse waiting syncs: the assignments of this generation are void."""
    for member in group.members.values():
        group.assign(member, b"")
        answer_sync(group, member, error, effects)


def forget_unsynced(group: ClassicGroup, effects: Effects) -> None:
    if group.unsynced:
        group.unsynced.clear()
        effects.stop(TimerKind.SYNC)


def persist(group: ClassicGroup, write: Write, effects: Effects, assignments: dict[str, bytes]) -> None:
    """Append the group's record; `write` holds what depends on it."""
    assert assignments.keys() <= group.members.keys(), f"{[*assignments]} are not all members of {group.group_id}"
    assert write.generation in (None, group.generation), f"{write.generation} is written in {group.generation}"
    effects.persist(group.begin_write(write), record_of(group, assignments))
