"""From one role to the next: what is remembered, which nodes are told, and what a role begins with.

Whatever must survive a crash is persisted here, before anything that follows from it is sent.
"""

from typing import Final

from kavka_broker.core.raft import wire
from kavka_broker.core.raft.effects import Followed, Led
from kavka_broker.core.raft.node_state import NodeState
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


def become_unattached(node: NodeState, epoch: int, *, patience_ms: int | None = None) -> None:
    """Follow no leader. In an epoch of which nothing is known yet, the vote is free."""
    assert epoch >= node.epoch, f"epoch {node.epoch} cannot go back to {epoch}"
    leave_lead(node)
    if epoch > node.epoch:
        node.remember(QuorumState(epoch))
    node.role = Unattached(node.after(node.waits.election_timeout_ms() if patience_ms is None else patience_ms))
    node.effects.emit(Followed(NOBODY, node.epoch))


def become_follower(node: NodeState, epoch: int, leader: LeaderAt) -> None:
    """Fetch from the leader of the epoch, which never has another."""
    assert leader.node_id != node.node_id, f"node {node.node_id} cannot follow itself"
    leave_lead(node)
    now, state = node.state, QuorumState(epoch, leader.node_id)
    if now.leader_epoch == epoch:
        assert now.leader_id in (NOBODY, leader.node_id), f"epoch {epoch} has two leaders: {now} and {leader}"
        state = QuorumState(epoch, leader.node_id, now.voted_id, now.voted_directory_id)
    node.remember(state)
    patience_ms = node.settings.fetch_timeout_ms + node.waits.soon_ms()
    node.role = Follower(leader, patience_ms, node.after(patience_ms), node.now_ms)
    node.effects.note("raft.leader.followed", leader=leader.node_id, epoch=epoch)
    node.effects.emit(Followed(leader.node_id, epoch))


def become_prospective(node: NodeState, leader: LeaderAt | None) -> None:
    """Ask whether the other voters would vote for this node, before an epoch is spent on it."""
    assert not isinstance(node.role, Leader), f"a leader does not ask for votes: {node.role}"
    assert not node.is_forgetful, "who has lost what others count on does not stand"
    tally = Tally(node.voters, granted=_own_vote(node))
    node.role = Prospective(leader, tally, node.after(node.waits.election_timeout_ms()))
    node.effects.note("raft.pre_vote.begun", epoch=node.epoch, round=node.waits.rounds)
    if leader is None:
        node.effects.emit(Followed(NOBODY, node.epoch))
    _ask_votes(node, tally, is_pre_vote=True)


def become_candidate(node: NodeState) -> None:
    """Begin a new epoch, and vote for this node in it."""
    assert isinstance(node.role, Prospective), f"{node.role} has not asked for pre-votes"
    assert node.epoch + 1 < EPOCH_MAX, f"there is no epoch after {node.epoch}"
    vote = QuorumState(node.epoch + 1, NOBODY, node.node_id, node.identity.directory_id)
    node.remember(vote)
    tally = Tally(node.voters, granted=_own_vote(node))
    node.role = Candidate(tally, node.after(node.waits.election_timeout_ms()))
    node.effects.note("raft.election.begun", epoch=node.epoch)
    node.effects.emit(Followed(NOBODY, node.epoch))
    _ask_votes(node, tally, is_pre_vote=False)


def _own_vote(node: NodeState) -> set[int]:
    return {node.node_id} if node.is_voter else set()


def _ask_votes(node: NodeState, tally: Tally, *, is_pre_vote: bool) -> None:
    for voter in tally.voters:
        if voter.node_id == node.node_id:
            continue
        peer = node.peer(voter.node_id, voter.endpoints)
        send = node.effects.send(peer, wire.ask_vote(node, voter, is_pre_vote=is_pre_vote))
        if send is None:
            tally.refused.add(voter.node_id)
        else:
            tally.asked.append(send)


def become_leader(node: NodeState, granting: set[int]) -> None:
    """Write the beginning of the epoch: older records are committed only together with it."""
    state = node.state
    assert isinstance(node.role, Candidate), f"{node.role} was not elected"
    assert len(granting) > len(node.role.tally.voters) // 2, f"{granting} are no majority"
    assert state.voted_id == node.node_id, f"a leader has voted for itself: {state}"
    node.remember(QuorumState(node.epoch, node.node_id, state.voted_id, state.voted_directory_id))
    node.waits.rounds = 0
    start_offset = node.append(make_opening_records(node, granting))
    assert start_offset >= node.high_watermark, f"epoch {node.epoch} begins at {start_offset}, which was committed"
    node.role = Leader(start_offset, Replicas(node.now_ms), node.now_ms)
    node.effects.flush()
    node.effects.note("raft.election.won", epoch=node.epoch, offset=start_offset)
    node.effects.emit(Led(node.epoch, start_offset))


def make_opening_records(node: NodeState, granting: set[int]) -> list[Message]:
    """Return the control records that begin an epoch: the leader with its votes, and the voters where no record names
    them.
    """
    version = 1 if node.history.kraft_version else 0

    def named(voter: Voter) -> LeaderVoter:
        return LeaderVoter(voter.node_id, voter.directory_id) if version else LeaderVoter(voter.node_id)

    records: list[Message] = [
        LeaderChangeMessage(
            version,
            node.node_id,
            [named(voter) for voter in node.voters],
            [named(voter) for voter in node.voters if voter.node_id in granting],
        )
    ]
    if version:
        here = updated(node.voters, node, node.identity.endpoints)
        if node.history.voters_offset < 0:
            # The voters came with `format` and are in no record of the log yet.
            records.append(KRaftVersionRecord(0, node.history.kraft_version))
        if node.history.voters_offset < 0 or here != node.voters:
            records.append(voters_record(here))
    return records


def updated(voters: tuple[Voter, ...], node: NodeState, endpoints: Endpoints) -> tuple[Voter, ...]:
    """Voters with this node's endpoints as they are now."""
    renewed = [
        Voter(voter.node_id, voter.directory_id, endpoints) if endpoints and node.is_self(voter) else voter
        for voter in voters
    ]
    return read_voters(voters_record(renewed))


def become_resigned(node: NodeState, *, is_final: bool) -> None:
    """Give the epoch up, and tell the voters, the best of them first, to elect another leader."""
    role = node.role
    assert isinstance(role, Leader), f"{role} has no lead to give up"
    successors = by_end_offset(node, role)
    leave_lead(node)
    node.role = Resigned(node.after(node.waits.election_timeout_ms()), is_final)
    node.effects.note("raft.leader.resigned", epoch=node.epoch, successors=[voter.node_id for voter in successors])
    node.effects.emit(Followed(NOBODY, node.epoch))
    request = wire.end_epoch(node, successors)
    for voter in successors:
        node.effects.send(node.peer(voter.node_id, voter.endpoints), request)
    if not node.is_voter and not is_final:
        # The node was removed, and waits only for the next leader.
        become_unattached(node, node.epoch)


def by_end_offset(node: NodeState, role: Leader) -> list[Voter]:
    """The other voters, those with the longest logs first."""
    replicas = {voter.node_id: role.replicas.of(voter) for voter in node.others}
    ends = {node_id: -1 if replica is None else replica.end_offset for node_id, replica in replicas.items()}
    return sorted(node.others, key=lambda voter: (-ends[voter.node_id], voter.node_id))


def leave_lead(node: NodeState) -> None:
    """Refuse waiting requests: their senders have to look for another leader."""
    role = node.role
    if not isinstance(role, Leader):
        return
    for parked in role.parked:
        node.effects.answer(parked.later, wire.fetch_answer(node, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    role.parked.clear()
    if role.change is not None:
        # The record may yet be committed by another leader: the client asks again and sees.
        change = role.change
        node.effects.answer(
            change.later or change.early, change.kind(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, LED_NO_LONGER)
        )
        role.change = None


def learn(node: NodeState, epoch: int, leader_id: int, endpoints: Endpoints, *, is_leader_itself: bool = False) -> None:
    """Learn from a node that an epoch exists, or which node leads it. `is_leader_itself`: that node is the leader."""
    if epoch < node.epoch or not node.believes(epoch):
        return
    endpoints = endpoints or node.endpoints_of(leader_id)
    is_known = leader_id not in (NOBODY, node.node_id) and node.peer(leader_id, endpoints) is not None
    if epoch > node.epoch:
        if is_known:
            become_follower(node, epoch, LeaderAt(leader_id, endpoints))
        else:
            become_unattached(node, epoch)
        return
    if not is_known or not (node.leader is None or is_leader_itself or _has_moved(node, leader_id, endpoints)):
        return
    if node.state.leader_id not in (NOBODY, leader_id):
        node.effects.warn("raft.leader.disputed", epoch=epoch, known=node.state.leader_id, claimed=leader_id)
    elif not isinstance(node.role, Follower):
        become_follower(node, epoch, LeaderAt(leader_id, endpoints))


def _has_moved(node: NodeState, leader_id: int, endpoints: Endpoints) -> bool:
    """Whether a voter reports a new address for the leader that this node cannot reach."""
    role = node.role
    is_same = isinstance(role, Prospective) and role.leader is not None and role.leader.node_id == leader_id
    return is_same and node.peer(leader_id, endpoints) != node.leader_peer()
