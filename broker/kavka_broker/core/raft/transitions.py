"""From one role to the next: what is remembered, who is told, and what a role begins with.

Whatever must survive a crash is persisted here, before anything that follows from it is sent.
"""

from typing import Final

from kavka_broker.core.raft import wire
from kavka_broker.core.raft.effects import Followed, Led
from kavka_broker.core.raft.member import Member
from kavka_broker.core.raft.quorum_state import EPOCH_MAX, NOBODY, QuorumState
from kavka_broker.core.raft.replicas import Replicas
from kavka_broker.core.raft.roles import (
    Candidate,
    Endpoints,
    Follower,
    Leader,
    LeaderAt,
    Prospective,
    Resigned,
    Tally,
    Unattached,
)
from kavka_broker.core.raft.voters import Voter, read_voters, voters_record
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.leader_change_message import LeaderChangeMessage
from kavka_broker.protocol.messages.leader_change_message import Voter as LeaderVoter

LED_NO_LONGER: Final = "the leader has changed; ask whether the change was made, and again if not"


def become_unattached(member: Member, epoch: int, *, patience_ms: int | None = None) -> None:
    """Nobody known leads. In an epoch of which nothing is known yet, the vote is free."""
    assert epoch >= member.epoch, f"epoch {member.epoch} cannot go back to {epoch}"
    leave_lead(member)
    if epoch > member.epoch:
        member.remember(QuorumState(epoch))
    member.role = Unattached(member.after(member.election_timeout_ms() if patience_ms is None else patience_ms))
    member.emit(Followed(NOBODY, member.epoch))


def become_follower(member: Member, epoch: int, leader: LeaderAt) -> None:
    """Fetch from the leader of the epoch, which never has another."""
    assert leader.node_id != member.node_id, f"node {member.node_id} cannot follow itself"
    leave_lead(member)
    now, state = member.state, QuorumState(epoch, leader.node_id)
    if now.leader_epoch == epoch:
        assert now.leader_id in (NOBODY, leader.node_id), f"epoch {epoch} has two leaders: {now} and {leader}"
        state = QuorumState(epoch, leader.node_id, now.voted_id, now.voted_directory_id)
    member.remember(state)
    patience_ms = member.settings.fetch_timeout_ms + member.soon_ms()
    member.role = Follower(leader, patience_ms, member.after(patience_ms), member.now_ms)
    member.note("raft.leader.followed", leader=leader.node_id, epoch=epoch)
    member.emit(Followed(leader.node_id, epoch))


def become_prospective(member: Member, leader: LeaderAt | None) -> None:
    """Ask whether the others would vote for this node, before an epoch is spent on it."""
    assert not isinstance(member.role, Leader), f"a leader does not ask for votes: {member.role}"
    assert not member.is_forgetful, "who has lost what others count on does not stand"
    tally = Tally(member.voters, granted=_own_vote(member))
    member.role = Prospective(leader, tally, member.after(member.election_timeout_ms()))
    member.note("raft.pre_vote.begun", epoch=member.epoch, round=member.rounds)
    if leader is None:
        member.emit(Followed(NOBODY, member.epoch))
    _ask_votes(member, tally, is_pre_vote=True)


def become_candidate(member: Member) -> None:
    """Begin a new epoch and vote for this node in it."""
    assert isinstance(member.role, Prospective), f"{member.role} has not asked for pre-votes"
    assert member.epoch + 1 < EPOCH_MAX, f"there is no epoch after {member.epoch}"
    vote = QuorumState(member.epoch + 1, NOBODY, member.node_id, member.identity.directory_id)
    member.remember(vote)
    tally = Tally(member.voters, granted=_own_vote(member))
    member.role = Candidate(tally, member.after(member.election_timeout_ms()))
    member.note("raft.election.begun", epoch=member.epoch)
    member.emit(Followed(NOBODY, member.epoch))
    _ask_votes(member, tally, is_pre_vote=False)


def _own_vote(member: Member) -> set[int]:
    return {member.node_id} if member.is_voter else set()


def _ask_votes(member: Member, tally: Tally, *, is_pre_vote: bool) -> None:
    for voter in tally.voters:
        if voter.node_id == member.node_id:
            continue
        peer = member.peer(voter.node_id, voter.endpoints)
        send = member.send(peer, wire.ask_vote(member, voter, is_pre_vote=is_pre_vote))
        if send is None:
            tally.refused.add(voter.node_id)
        else:
            tally.asked.append(send)


def become_leader(member: Member, granting: set[int]) -> None:
    """Write the beginning of the epoch: nothing older is committed but with it."""
    state = member.state
    assert isinstance(member.role, Candidate), f"{member.role} was not elected"
    assert len(granting) > len(member.role.tally.voters) // 2, f"{granting} are no majority"
    assert state.voted_id == member.node_id, f"a leader has voted for itself: {state}"
    member.remember(QuorumState(member.epoch, member.node_id, state.voted_id, state.voted_directory_id))
    member.rounds = 0
    start_offset = member.append(_opening(member, granting))
    assert start_offset >= member.high_watermark, f"epoch {member.epoch} begins at {start_offset}, which was committed"
    member.role = Leader(start_offset, Replicas(member.now_ms), member.now_ms)
    member.flush()
    member.note("raft.election.won", epoch=member.epoch, offset=start_offset)
    member.emit(Led(member.epoch, start_offset))


def _opening(member: Member, granting: set[int]) -> list[Message]:
    version = 1 if member.history.kraft_version else 0

    def named(voter: Voter) -> LeaderVoter:
        return LeaderVoter(voter.node_id, voter.directory_id) if version else LeaderVoter(voter.node_id)

    records: list[Message] = [
        LeaderChangeMessage(
            version,
            member.node_id,
            [named(voter) for voter in member.voters],
            [named(voter) for voter in member.voters if voter.node_id in granting],
        )
    ]
    if version:
        here = updated(member.voters, member, member.identity.endpoints)
        if member.history.voters_offset < 0:
            # They came with `format` and stand in no log yet.
            records.append(KRaftVersionRecord(0, member.history.kraft_version))
        if member.history.voters_offset < 0 or here != member.voters:
            records.append(voters_record(here))
    return records


def updated(voters: tuple[Voter, ...], member: Member, endpoints: Endpoints) -> tuple[Voter, ...]:
    """The voters, with this node's endpoints as they are now."""
    renewed = [
        Voter(voter.node_id, voter.directory_id, endpoints) if endpoints and member.is_self(voter) else voter
        for voter in voters
    ]
    return read_voters(voters_record(renewed))


def become_resigned(member: Member, *, is_final: bool) -> None:
    """Give the epoch up, and tell the voters, the best of them first, that another is wanted."""
    role = member.role
    assert isinstance(role, Leader), f"{role} has no lead to give up"
    successors = by_end_offset(member, role)
    leave_lead(member)
    member.role = Resigned(member.after(member.election_timeout_ms()), is_final)
    member.note("raft.leader.resigned", epoch=member.epoch, successors=[voter.node_id for voter in successors])
    member.emit(Followed(NOBODY, member.epoch))
    request = wire.end_epoch(member, successors)
    for voter in successors:
        member.send(member.peer(voter.node_id, voter.endpoints), request)
    if not member.is_voter and not is_final:
        # It was removed, and has nothing to wait for but the next leader.
        become_unattached(member, member.epoch)


def by_end_offset(member: Member, role: Leader) -> list[Voter]:
    """The other voters, those with most of the log first."""
    replicas = {voter.node_id: role.replicas.of(voter) for voter in member.others}
    ends = {node_id: -1 if replica is None else replica.end_offset for node_id, replica in replicas.items()}
    return sorted(member.others, key=lambda voter: (-ends[voter.node_id], voter.node_id))


def leave_lead(member: Member) -> None:
    """Whoever waits for this leader is told to look for another."""
    role = member.role
    if not isinstance(role, Leader):
        return
    for parked in role.parked:
        member.answer(parked.later, wire.fetch_answer(member, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    role.parked.clear()
    if role.change is not None:
        # Its record may yet be committed, by another leader: the client asks again and sees.
        change = role.change
        member.answer(change.later or change.early, change.kind(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, LED_NO_LONGER))
        role.change = None


def learn(member: Member, epoch: int, leader_id: int, endpoints: Endpoints, *, is_leader_itself: bool = False) -> None:
    """Somebody says who leads an epoch, or that there is one. `is_leader_itself`: the leader does."""
    if epoch < member.epoch or not member.believes(epoch):
        return
    endpoints = endpoints or member.endpoints_of(leader_id)
    is_known = leader_id not in (NOBODY, member.node_id) and member.peer(leader_id, endpoints) is not None
    if epoch > member.epoch:
        if is_known:
            become_follower(member, epoch, LeaderAt(leader_id, endpoints))
        else:
            become_unattached(member, epoch)
        return
    if not is_known or not (member.leader is None or is_leader_itself or _has_moved(member, leader_id, endpoints)):
        return
    if member.state.leader_id not in (NOBODY, leader_id):
        member.warn("raft.leader.disputed", epoch=epoch, known=member.state.leader_id, claimed=leader_id)
    elif not isinstance(member.role, Follower):
        become_follower(member, epoch, LeaderAt(leader_id, endpoints))


def _has_moved(member: Member, leader_id: int, endpoints: Endpoints) -> bool:
    """Whether the leader that nobody hears of at its address has another, as others know."""
    role = member.role
    is_same = isinstance(role, Prospective) and role.leader is not None and role.leader.node_id == leader_id
    return is_same and member.peer(leader_id, endpoints) != member.leader_peer()
