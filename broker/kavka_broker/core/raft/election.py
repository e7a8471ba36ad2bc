"""Votes: who gets one, and what becomes of an election.

A vote is given once an epoch, and only to a log that is not behind: this is what keeps committed records in every
later leader. A pre-vote promises nothing and so costs nothing; but who hears of a living leader refuses it, and with
that a node that merely lost its own connection cannot bring down a leader that everybody else is content with
(KIP-996).

As in Kafka, votes are not refused for not standing in the list of voters: the voter may be the one whose list is old.
What protects is the log of a node that was removed: it does not have the record of its removal.
"""

from kavka_broker.core.raft import wire
from kavka_broker.core.raft.effects import Send
from kavka_broker.core.raft.member import Member
from kavka_broker.core.raft.quorum_state import EPOCH_MAX, NOBODY, QuorumState
from kavka_broker.core.raft.roles import NEVER_MS, Candidate, Follower, Leader, Prospective, Resigned, Tally, Unattached
from kavka_broker.core.raft.transitions import (
    become_candidate,
    become_follower,
    become_leader,
    become_prospective,
    become_unattached,
    learn,
)
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.vote_request import PartitionData, VoteRequest
from kavka_broker.protocol.messages.vote_response import VoteResponse
from kavka_broker.protocol.uuids import ZERO


def on_vote(member: Member, request: VoteRequest) -> VoteResponse:
    """Answer a candidate."""
    if request.cluster_id not in (None, member.identity.cluster_id):
        member.warn("raft.vote.misdirected", cluster_id=request.cluster_id)
        return VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked: PartitionData | None = wire.only_partition(request.topics)
    if asked is None:
        return VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
    error = _problem(member, request, asked)
    if error is ErrorCode.NONE and asked.replica_epoch > member.epoch:
        become_unattached(member, asked.replica_epoch)
    if error is ErrorCode.NONE and not is_addressed_here(member, request.voter_id, asked.voter_directory_id):
        error = ErrorCode.INVALID_VOTER_KEY
    is_granted = error is ErrorCode.NONE and may_vote_for(member, asked)
    if is_granted and not asked.pre_vote and member.state.voted_id == NOBODY:
        assert asked.replica_epoch == member.epoch, f"a vote of epoch {asked.replica_epoch} in {member.epoch}"
        member.remember(QuorumState(member.epoch, NOBODY, asked.replica_id, asked.replica_directory_id))
        _be_patient(member)
    outcome = "granted" if is_granted else "refused" if error is ErrorCode.NONE else error.name
    member.note(
        "raft.pre_vote.answered" if asked.pre_vote else "raft.vote.answered",
        candidate=asked.replica_id,
        epoch=asked.replica_epoch,
        outcome=outcome,
    )
    return wire.vote_answer(member, error, is_granted=is_granted)


def _problem(member: Member, request: VoteRequest, asked: PartitionData) -> ErrorCode:
    # A candidate's epoch is new, so nothing in its log can be of it; a pre-vote is of an epoch that may have records.
    epoch_max = asked.replica_epoch if asked.pre_vote else asked.replica_epoch - 1
    if asked.last_offset < 0 or not 0 <= asked.last_offset_epoch <= epoch_max:
        return ErrorCode.INVALID_REQUEST
    if asked.replica_epoch < member.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if not member.believes(asked.replica_epoch):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.INVALID_REQUEST if asked.replica_id < 0 else ErrorCode.NONE


def is_addressed_here(member: Member, voter_id: int, directory_id: bytes) -> bool:
    """Whether a request means this node, with this disk. Older versions do not say."""
    return voter_id in (NOBODY, member.node_id) and directory_id in (ZERO, member.identity.directory_id)


def may_vote_for(member: Member, asked: PartitionData) -> bool:
    """Whether a candidate of this epoch gets this node's vote."""
    if member.is_forgetful:
        return False
    has_all = (asked.last_offset_epoch, asked.last_offset) >= (member.log.latest_epoch, member.end_offset)
    if asked.pre_vote:
        return has_all and not _has_living_leader(member)
    state = member.state
    if state.voted_id != NOBODY:
        is_same = state.voted_id == asked.replica_id
        return is_same and state.voted_directory_id in (ZERO, asked.replica_directory_id)
    return state.leader_id == NOBODY and has_all


def _has_living_leader(member: Member) -> bool:
    match member.role:
        case Leader():
            return True
        case Follower(has_fetched=has_fetched):
            return has_fetched
        case _:
            return False


def _be_patient(member: Member) -> None:
    """Whoever got the vote also gets the time to win."""
    if isinstance(member.role, Unattached):
        member.role.election_at_ms = member.after(member.election_timeout_ms())


# --- a candidate's side ----------------------------------------------------------------------------------------------


def on_voted(member: Member, send: Send, response: VoteResponse | None) -> None:
    """A peer has answered, or cannot be reached."""
    role = member.role
    tally = role.tally if isinstance(role, Prospective | Candidate) and role.tally.is_of(send) else None
    if response is None or response.error_code:
        if response is not None:
            member.warn("raft.vote.refused", by=send.peer.node_id, error=ErrorCode(response.error_code).name)
        _count(tally, send, is_granted=False)
        return
    answer = wire.only_partition(response.topics)
    if answer is None:
        _count(tally, send, is_granted=False)
        return
    _count(tally, send, is_granted=answer.vote_granted and answer.leader_epoch == member.epoch)
    endpoints = wire.told_endpoints(response, answer.leader_id, member.identity.listener)
    learn(member, answer.leader_epoch, answer.leader_id, endpoints)


def _count(tally: Tally | None, send: Send, *, is_granted: bool) -> None:
    if tally is not None:
        assert send.peer.node_id not in tally.granted | tally.refused, f"{send.peer} has voted"
        (tally.granted if is_granted else tally.refused).add(send.peer.node_id)


# --- time ------------------------------------------------------------------------------------------------------------


def drive(member: Member, role: Unattached | Prospective | Candidate | Resigned) -> None:
    """Take the step that is due, if any."""
    match role:
        case Unattached(election_at_ms=due_ms):
            if _may_stand(member) and member.now_ms >= due_ms:
                become_prospective(member, None)
        case Resigned(election_at_ms=due_ms, is_final=False) if member.now_ms >= due_ms:
            if _may_stand(member):
                become_prospective(member, None)
            else:
                become_unattached(member, member.epoch)
        case Prospective() | Candidate():
            _drive_round(member, role)


def _may_stand(member: Member) -> bool:
    return member.may_stand and member.adopting is None and member.epoch + 1 < EPOCH_MAX


def _drive_round(member: Member, role: Prospective | Candidate) -> None:
    assert not (role.tally.is_won and role.tally.is_lost), role.tally
    if role.tally.is_won:
        if isinstance(role, Prospective):
            become_candidate(member)
        else:
            become_leader(member, role.tally.granted)
    elif member.now_ms >= role.over_at_ms:
        _try_again(member, role)
    elif role.tally.is_lost and not role.is_over:
        role.is_over = True
        member.rounds += 1
        role.over_at_ms = min(role.over_at_ms, member.after(member.soon_ms()))


def _try_again(member: Member, role: Prospective | Candidate) -> None:
    if not role.is_over:
        member.rounds += 1
    leader = role.leader if isinstance(role, Prospective) else None
    if leader is not None:
        # The others may well hear of it: fetch, and find out.
        become_follower(member, member.epoch, leader)
    elif not _may_stand(member):
        become_unattached(member, member.epoch)
    else:
        become_prospective(member, None)


def due_ms(member: Member, role: Unattached | Prospective | Candidate | Resigned) -> int:
    """When `drive` has something to do."""
    match role:
        case Prospective(over_at_ms=due) | Candidate(over_at_ms=due) | Resigned(election_at_ms=due, is_final=False):
            return due
        case Unattached(election_at_ms=due) if _may_stand(member):
            return due
        case _:
            return NEVER_MS
