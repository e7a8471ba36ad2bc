"""One member of the controller quorum: the rules of KRaft, as functions of what has happened.

    node = RaftNode(identity, settings, state, history, log, random, now_ms)
    effects = node.start(now_ms)
    effects = node.tick(now_ms)                         # whenever `deadline_ms` has come
    response, effects = node.vote(request, now_ms)      # a request of a peer
    effects = node.answered(send, response, now_ms)     # what a peer answered to an effect `Send`; None: unreachable
    effects = node.appended(now_ms)                     # the leader's controller has appended to the log
    effects = node.flushed(now_ms)                      # a sync is done; `log.synced_offset` tells how far
    effects = node.leader_lost(now_ms)                  # the connection to the leader has died

No clock, no chance, no disk and no network in here: `effects` says how effects are run. Everything random comes
from `random(low, high)`, both included. Theory: Ongaro's Raft with Kafka's changes (KIP-595: followers fetch; KIP-996:
pre-vote; KIP-853: voters that change).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from kavka_broker.core.raft import election, follower, leader, own_vote, voter_changes
from kavka_broker.core.raft.effects import Effect, Later, Send
from kavka_broker.core.raft.log_view import LogView, SnapshotId
from kavka_broker.core.raft.member import Member
from kavka_broker.core.raft.quorum_state import NOBODY, QuorumState, is_believable
from kavka_broker.core.raft.replicas import Key, Replica
from kavka_broker.core.raft.roles import Candidate, Follower, Leader, LeaderAt, Prospective, Unattached
from kavka_broker.core.raft.settings import Identity, Settings
from kavka_broker.core.raft.transitions import become_follower, become_resigned, become_unattached
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.core.raft.voters import Voter
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kavka_broker.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kavka_broker.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kavka_broker.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kavka_broker.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kavka_broker.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kavka_broker.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kavka_broker.protocol.messages.vote_request import VoteRequest
from kavka_broker.protocol.messages.vote_response import VoteResponse

Effects = list[Effect]
Q = TypeVar("Q")
A = TypeVar("A")

#: Roles that a node can pass through within one call: a quorum of one goes from nothing to its lead.
STEPS_MAX: Final = 8


class RaftNode:
    """A voter or an observer of `__cluster_metadata-0`."""

    def __init__(
        self,
        identity: Identity,
        settings: Settings,
        state: QuorumState,
        history: VoterHistory,
        log: LogView,
        random: Callable[[int, int], int],
        now_ms: int,
        *,
        high_watermark: int = 0,
    ) -> None:
        self._member = Member(identity, settings, state, history, log, random, now_ms)
        # What a snapshot stands for is committed. Of the log behind it that is not known before a leader says so.
        assert high_watermark >= 0, high_watermark
        self._member.high_watermark = high_watermark

    # --- what is known here ------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self._member.epoch

    @property
    def leader_id(self) -> int:
        """Who leads, or -1."""
        known = self._member.leader
        return NOBODY if known is None else known.node_id

    @property
    def leader_endpoint(self) -> tuple[str, int] | None:
        """Host and port of the leader's controller listener."""
        peer = self._member.leader_peer()
        return None if peer is None else (peer.host, peer.port)

    @property
    def high_watermark(self) -> int:
        return self._member.high_watermark

    @property
    def state(self) -> QuorumState:
        return self._member.state

    @property
    def history(self) -> VoterHistory:
        return self._member.history

    @property
    def voters(self) -> tuple[Voter, ...]:
        return self._member.voters

    @property
    def is_leader(self) -> bool:
        return isinstance(self._member.role, Leader)

    @property
    def is_voter(self) -> bool:
        return self._member.is_voter

    @property
    def role(self) -> str:
        """Unattached, Prospective, Candidate, Leader, Follower, Resigned or Observer."""
        role = self._member.role
        if isinstance(role, Follower | Unattached) and not self.is_voter:
            return "Observer"
        return type(role).__name__

    @property
    def deadline_ms(self) -> int:
        """When `tick` has something to do, if nothing happens before."""
        member = self._member
        match member.role:
            case Leader() as role:
                return min(leader.due_ms(member, role), voter_changes.due_ms(role))
            case Follower() as role:
                return min(follower.due_ms(member, role), own_vote.due_ms(member, role))
            case Unattached() | Prospective() as role:
                return min(follower.discovery_due_ms(member, role), election.due_ms(member, role))
            case role:
                return election.due_ms(member, role)

    @property
    def told_high_watermark(self) -> int:
        """What a leader says of it: -1 before it has committed something of its own epoch."""
        role = self._member.role
        return leader.told_watermark(self._member, role) if isinstance(role, Leader) else self.high_watermark

    def replicas(self, now_ms: int) -> tuple[list[Replica], list[Replica]]:
        """Voters and observers as a leader knows them, itself among the voters; for DescribeQuorum. Empty elsewhere.

        Observers that were silent for five minutes are left out, as in Kafka.
        """
        member = self._member
        if not isinstance(member.role, Leader):
            return [], []
        end_offset = member.log.end_offset
        voters: list[Replica] = []
        known: set[Key] = set()
        for voter in member.voters:
            replica = member.role.replicas.of(voter)
            if member.is_self(voter):
                replica = Replica(voter.node_id, member.identity.directory_id, end_offset, now_ms, now_ms)
            elif replica is None:
                replica = Replica(voter.node_id, voter.directory_id)
            voters.append(replace(replica))
            known.add((replica.node_id, replica.directory_id))
        observers = [replace(one) for key, one in member.role.replicas.listed(now_ms) if key not in known]
        return voters, observers

    # --- local facts -------------------------------------------------------------------------------------------------

    def start(self, now_ms: int) -> Effects:
        """Once, before anything else. A quorum of one leads when the effects of this call are done."""
        member = self._at(now_ms)
        if not is_believable(member.epoch, member.log.latest_epoch):
            self._out_of_epochs(member)
        if member.log.latest_epoch > member.epoch:
            member.remember(QuorumState(member.log.latest_epoch))
        if member.log.synced_offset < member.log.end_offset:
            # A fetch and a high watermark speak of what is on the disk; after a crash nobody knows what was.
            member.flush()
        known = LeaderAt(member.state.leader_id, member.endpoints_of(member.state.leader_id))
        if known.node_id not in (NOBODY, member.node_id) and member.peer(known.node_id, known.endpoints) is not None:
            become_follower(member, member.epoch, known)
        else:
            become_unattached(member, member.epoch, patience_ms=member.soon_ms() if member.others else 0)
        return self._done()

    def tick(self, now_ms: int) -> Effects:
        """Time has passed."""
        self._at(now_ms)
        return self._done()

    def appended(self, now_ms: int) -> Effects:
        """The leader's controller has appended; call before `flushed`, so that followers fetch while we sync."""
        return self.tick(now_ms)

    def flushed(self, now_ms: int) -> Effects:
        """A sync is done: `log.synced_offset` has moved."""
        return self.tick(now_ms)

    def leader_lost(self, now_ms: int) -> Effects:
        """The connection to the leader has died. Harmless if it is not true: others who hear of it refuse to vote."""
        member = self._at(now_ms)
        if isinstance(member.role, Follower):
            follower.lose_leader(member, member.role)
        return self._done()

    def resign(self, now_ms: int) -> Effects:
        """Shutting down: a leader gives its epoch up and names who should follow it."""
        member = self._at(now_ms)
        if isinstance(member.role, Leader):
            become_resigned(member, is_final=True)
        return self._done()

    def step_down(self, now_ms: int) -> Effects:
        """A leader that cannot write gives its epoch up, and stays a voter."""
        member = self._at(now_ms)
        if isinstance(member.role, Leader):
            become_resigned(member, is_final=False)
        return self._done()

    def snapshot_adopted(self, snapshot: SnapshotId, history: VoterHistory, now_ms: int) -> Effects:
        """`AdoptSnapshot` is done; `history` is what the snapshot says of the voters."""
        follower.on_adopted(self._at(now_ms), snapshot, history)
        return self._done()

    def snapshot_refused(self, snapshot: SnapshotId, now_ms: int) -> Effects:
        """What was downloaded is no whole snapshot; the log is as it was."""
        follower.on_refused(self._at(now_ms), snapshot)
        return self._done()

    # --- answers of peers --------------------------------------------------------------------------------------------

    def answered(self, send: Send, response: Message | None, now_ms: int) -> Effects:
        """What became of an effect `Send`; None: not reached, or no answer within `request_timeout_ms`."""
        member = self._at(now_ms)
        match send.request:
            case VoteRequest():
                election.on_voted(member, send, _as(VoteResponse, response))
            case FetchRequest():
                follower.on_fetched(member, send, _as(FetchResponse, response))
            case FetchSnapshotRequest():
                follower.on_snapshot_fetched(member, send, _as(FetchSnapshotResponse, response))
            case BeginQuorumEpochRequest():
                leader.on_begun(member, send, _as(BeginQuorumEpochResponse, response))
            case ApiVersionsRequest():
                voter_changes.on_versions(member, send, _as(ApiVersionsResponse, response))
            case UpdateRaftVoterRequest():
                own_vote.on_answered(member, send, _as(UpdateRaftVoterResponse, response))
            case AddRaftVoterRequest():
                own_vote.on_answered(member, send, _as(AddRaftVoterResponse, response))
            case RemoveRaftVoterRequest():
                own_vote.on_answered(member, send, _as(RemoveRaftVoterResponse, response))
            case EndQuorumEpochRequest():
                pass  # whoever heard it acts upon it
            case other:
                raise AssertionError(f"nobody here has asked {other}")
        return self._done()

    # --- requests of peers -------------------------------------------------------------------------------------------

    def vote(self, request: VoteRequest, now_ms: int) -> tuple[VoteResponse, Effects]:
        return self._answer(election.on_vote, request, now_ms)

    def begin_quorum_epoch(
        self, request: BeginQuorumEpochRequest, now_ms: int
    ) -> tuple[BeginQuorumEpochResponse, Effects]:
        return self._answer(follower.on_begin, request, now_ms)

    def end_quorum_epoch(self, request: EndQuorumEpochRequest, now_ms: int) -> tuple[EndQuorumEpochResponse, Effects]:
        return self._answer(follower.on_end, request, now_ms)

    def fetch(self, request: FetchRequest, now_ms: int) -> tuple[FetchResponse | Later, Effects]:
        return self._answer(leader.on_fetch, request, now_ms)

    def fetch_snapshot(self, request: FetchSnapshotRequest, now_ms: int) -> tuple[FetchSnapshotResponse, Effects]:
        return self._answer(leader.on_fetch_snapshot, request, now_ms)

    def add_voter(self, request: AddRaftVoterRequest, now_ms: int) -> tuple[AddRaftVoterResponse | Later, Effects]:
        return self._answer(voter_changes.on_add, request, now_ms)

    def remove_voter(
        self, request: RemoveRaftVoterRequest, now_ms: int
    ) -> tuple[RemoveRaftVoterResponse | Later, Effects]:
        return self._answer(voter_changes.on_remove, request, now_ms)

    def update_voter(self, request: UpdateRaftVoterRequest, now_ms: int) -> tuple[UpdateRaftVoterResponse, Effects]:
        return self._answer(voter_changes.on_update, request, now_ms)

    def _out_of_epochs(self, member: Member) -> None:
        """Somebody has said an epoch that cannot be, and it was written down. A node alone forgets it; one of several
        has to keep what it promised: it stays as it is, does not stand, and nobody believes it.
        """
        member.warn("raft.epoch.refused", epoch=member.epoch, own=member.log.latest_epoch)
        if not member.others:
            member.go_back(QuorumState(member.log.latest_epoch))

    # --- one call ----------------------------------------------------------------------------------------------------

    def _at(self, now_ms: int) -> Member:
        # A clock that steps back makes nobody wait longer.
        self._member.now_ms = max(self._member.now_ms, now_ms)
        return self._member

    def _answer(self, handler: Callable[[Member, Q], A], request: Q, now_ms: int) -> tuple[A, Effects]:
        response = handler(self._at(now_ms), request)
        return response, self._done()

    def _done(self) -> Effects:
        """Whatever is due now, and the effects of it all."""
        member = self._member
        for _ in range(STEPS_MAX):
            before = member.role
            _drive(member)
            if member.role is before:
                _check(member)
                return member.drain()
        raise AssertionError(f"node {member.node_id} finds no role in epoch {member.epoch}")


def _check(member: Member) -> None:
    """What holds between two calls: a role is what the disk remembers, and what is committed is in the log."""
    state, role = member.state, member.role
    match role:
        case Leader():
            assert state.leader_id == member.node_id, f"node {member.node_id} leads, and its state is {state}"
            assert member.adopting is None, f"a leader adopts {member.adopting}"
        case Follower(leader=followed):
            assert state.leader_id == followed.node_id, f"node {followed.node_id} is followed, and the state is {state}"
        case Candidate():
            assert state.voted_id == member.node_id, f"node {member.node_id} stands, and its state is {state}"
            assert state.leader_id == NOBODY, f"node {member.node_id} stands, and its state is {state}"
    assert member.high_watermark >= 0, member.high_watermark


def _drive(member: Member) -> None:
    match member.role:
        case Leader() as role:
            leader.drive(member, role)
            if member.role is role:
                voter_changes.drive(member, role)
        case Follower() as role:
            follower.drive(member, role)
            if member.role is role:
                own_vote.drive(member, role)
        case Unattached() | Prospective() as role:
            election.drive(member, role)
            if member.role is role:
                follower.discover(member, role)
        case role:
            election.drive(member, role)


def _as(kind: type[A], response: Message | None) -> A | None:
    assert response is None or isinstance(response, kind), f"{response} answers another question"
    return response
