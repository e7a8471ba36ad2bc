"""Votes: which candidate gets one, and what becomes of an election.

A vote is given once an epoch, and only to a log that is not behind: this is what keeps committed records in every
later leader. A pre-vote promises nothing and so costs nothing; but a node that hears of a living leader refuses it. So
a node that merely lost its own connection cannot bring down a leader that all others are content with (KIP-996).

As in Kafka, votes are not refused for not standing in the list of voters: the voter may be the one whose list is old.
What protects is the log of a node that was removed: it does not have the record of its removal.
"""

from kavka_broker.core.raft import wire
from kavka_broker.core.raft.effects import Send
from kavka_broker.core.raft.node_state import NodeState
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


def on_vote(node: NodeState, request: VoteRequest) -> VoteResponse:
    """Answer a candidate."""
    if request.cluster_id not in (None, node.identity.cluster_id):
        node.effects.warn("raft.vote.misdirected", cluster_id=request.cluster_id)
        return VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked: PartitionData | None = wire.only_partition(request.topics)
    if asked is None:
        return VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
    error = find_problem(node, request, asked)
    if error is ErrorCode.NONE and asked.replica_epoch > node.epoch:
        become_unattached(node, asked.replica_epoch)
    if error is ErrorCode.NONE and not is_addressed_here(node, request.voter_id, asked.voter_directory_id):
        error = ErrorCode.INVALID_VOTER_KEY
    is_granted = error is ErrorCode.NONE and may_vote_for(node, asked)
    if is_granted and not asked.pre_vote and node.state.voted_id == NOBODY:
        assert asked.replica_epoch == node.epoch, f"a vote of epoch {asked.replica_epoch} in {node.epoch}"
        node.remember(QuorumState(node.epoch, NOBODY, asked.replica_id, asked.replica_directory_id))
        _be_patient(node)
    assert not is_granted or asked.pre_vote or node.state.voted_id == asked.replica_id, f"{node.state} is promised"
    outcome = "granted" if is_granted else "refused" if error is ErrorCode.NONE else error.name
    node.effects.note(
        "raft.pre_vote.answered" if asked.pre_vote else "raft.vote.answered",
        candidate=asked.replica_id,
        epoch=asked.replica_epoch,
        outcome=outcome,
    )
    return wire.vote_answer(node, error, is_granted=is_granted)


def find_problem(node: NodeState, request: VoteRequest, asked: PartitionData) -> ErrorCode:
    """Return what is wrong with a question for a vote, or NONE."""
    # A candidate's epoch is new, so no record in its log can be of it; a pre-vote is of an epoch that may have records.
    epoch_max = asked.replica_epoch if asked.pre_vote else asked.replica_epoch - 1
    if asked.last_offset < 0 or not 0 <= asked.last_offset_epoch <= epoch_max:
        return ErrorCode.INVALID_REQUEST
    if asked.replica_epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if not node.believes(asked.replica_epoch):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.INVALID_REQUEST if asked.replica_id < 0 else ErrorCode.NONE


def is_addressed_here(node: NodeState, voter_id: int, directory_id: bytes) -> bool:
    """Whether a request means this node, with this disk. Older versions do not name them."""
    return voter_id in (NOBODY, node.node_id) and directory_id in (ZERO, node.identity.directory_id)


def may_vote_for(node: NodeState, asked: PartitionData) -> bool:
    """Whether a candidate of this epoch gets this node's vote."""
    assert asked.replica_epoch == node.epoch, f"a vote of epoch {asked.replica_epoch} is judged in {node.epoch}"
    if node.is_forgetful:
        return False
    has_all = (asked.last_offset_epoch, asked.last_offset) >= (node.log.latest_epoch, node.end_offset)
    if asked.pre_vote:
        return has_all and not _has_living_leader(node)
    state = node.state
    if state.voted_id != NOBODY:
        is_same = state.voted_id == asked.replica_id
        return is_same and state.voted_directory_id in (ZERO, asked.replica_directory_id)
    return state.leader_id == NOBODY and has_all


def _has_living_leader(node: NodeState) -> bool:
    match node.role:
        case Leader():
            return True
        case Follower(has_fetched=has_fetched):
            return has_fetched
        case _:
            return False


def _be_patient(node: NodeState) -> None:
    """Give a candidate that got the vote the time to win."""
    if isinstance(node.role, Unattached):
        node.role.election_at_ms = node.after(node.waits.election_timeout_ms())


# --- a candidate's side ----------------------------------------------------------------------------------------------


def on_voted(node: NodeState, send: Send, response: VoteResponse | None) -> None:
    """Take a peer's vote, or note that it cannot be reached."""
    role = node.role
    tally = role.tally if isinstance(role, Prospective | Candidate) and role.tally.is_of(send) else None
    if response is None or response.error_code:
        if response is not None:
            node.effects.warn("raft.vote.refused", by=send.peer.node_id, error=ErrorCode(response.error_code).name)
        _count(tally, send, is_granted=False)
        return
    answer = wire.only_partition(response.topics)
    if answer is None:
        _count(tally, send, is_granted=False)
        return
    _count(tally, send, is_granted=answer.vote_granted and answer.leader_epoch == node.epoch)
    endpoints = wire.told_endpoints(response, answer.leader_id, node.identity.listener)
    learn(node, answer.leader_epoch, answer.leader_id, endpoints)


def _count(tally: Tally | None, send: Send, *, is_granted: bool) -> None:
    if tally is not None:
        assert send.peer.node_id not in tally.granted | tally.refused, f"{send.peer} has voted"
        (tally.granted if is_granted else tally.refused).add(send.peer.node_id)


# --- time ------------------------------------------------------------------------------------------------------------


def drive(node: NodeState, role: Unattached | Prospective | Candidate | Resigned) -> None:
    """Take the election step that is due, if any."""
    match role:
        case Unattached(election_at_ms=due_ms):
            if _may_stand(node) and node.now_ms >= due_ms:
                become_prospective(node, None)
        case Resigned(election_at_ms=due_ms, is_final=False) if node.now_ms >= due_ms:
            if _may_stand(node):
                become_prospective(node, None)
            else:
                become_unattached(node, node.epoch)
        case Prospective() | Candidate():
            _drive_round(node, role)


def _may_stand(node: NodeState) -> bool:
    return node.may_stand and node.adopting is None and node.epoch + 1 < EPOCH_MAX


def _drive_round(node: NodeState, role: Prospective | Candidate) -> None:
    assert not (role.tally.is_won and role.tally.is_lost), role.tally
    if role.tally.is_won:
        if isinstance(role, Prospective):
            become_candidate(node)
        else:
            become_leader(node, role.tally.granted)
    elif node.now_ms >= role.over_at_ms:
        _try_again(node, role)
    elif role.tally.is_lost and not role.is_over:
        role.is_over = True
        node.waits.rounds += 1
        role.over_at_ms = min(role.over_at_ms, node.after(node.waits.soon_ms()))


def _try_again(node: NodeState, role: Prospective | Candidate) -> None:
    assert node.now_ms >= role.over_at_ms, f"{role} is not over at {node.now_ms}"
    if not role.is_over:
        node.waits.rounds += 1
    leader = role.leader if isinstance(role, Prospective) else None
    if leader is not None:
        # The other voters may still hear of the leader: fetch, and find out.
        become_follower(node, node.epoch, leader)
    elif not _may_stand(node):
        become_unattached(node, node.epoch)
    else:
        become_prospective(node, None)


def due_ms(node: NodeState, role: Unattached | Prospective | Candidate | Resigned) -> int:
    """The time at which `drive` has something to do."""
    match role:
        case Prospective(over_at_ms=due) | Candidate(over_at_ms=due) | Resigned(election_at_ms=due, is_final=False):
            return due
        case Unattached(election_at_ms=due) if _may_stand(node):
            return due
        case _:
            return NEVER_MS
