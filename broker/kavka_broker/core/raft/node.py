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

from kavka_broker.core.raft import auto_join, election, follower, leader, voter_changes
from kavka_broker.core.raft.effects import Effect, Later, Send
from kavka_broker.core.raft.log_view import LogView, SnapshotId
from kavka_broker.core.raft.node_state import NodeState
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
        self._state = NodeState(identity, settings, state, history, log, random, now_ms)
        # The snapshot's records are committed. Of the records behind it that is not known before a leader says so.
        assert high_watermark >= 0, high_watermark
        self._state.high_watermark = high_watermark

    # --- facts known here --------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def leader_id(self) -> int:
        """The leader's id, or -1."""
        known = self._state.leader
        return NOBODY if known is None else known.node_id

    @property
    def leader_endpoint(self) -> tuple[str, int] | None:
        """Host and port of the leader's controller listener."""
        peer = self._state.leader_peer()
        return None if peer is None else (peer.host, peer.port)

    @property
    def high_watermark(self) -> int:
        return self._state.high_watermark

    @property
    def state(self) -> QuorumState:
        return self._state.state

    @property
    def history(self) -> VoterHistory:
        return self._state.history

    @property
    def voters(self) -> tuple[Voter, ...]:
        return self._state.voters

    @property
    def is_leader(self) -> bool:
        return isinstance(self._state.role, Leader)

    @property
    def is_voter(self) -> bool:
        return self._state.is_voter

    @property
    def role(self) -> str:
        """Unattached, Prospective, Candidate, Leader, Follower, Resigned or Observer."""
        role = self._state.role
        if isinstance(role, Follower | Unattached) and not self.is_voter:
            return "Observer"
        return type(role).__name__

    @property
    def deadline_ms(self) -> int:
        """The time at which `tick` has something to do, if no other call comes before."""
        node = self._state
        match node.role:
            case Leader() as role:
                return min(leader.due_ms(node, role), voter_changes.due_ms(role))
            case Follower() as role:
                return min(follower.due_ms(node, role), auto_join.due_ms(node, role))
            case Unattached() | Prospective() as role:
                return min(follower.discovery_due_ms(node, role), election.due_ms(node, role))
            case role:
                return election.due_ms(node, role)

    @property
    def told_high_watermark(self) -> int:
        """The high watermark that a leader tells: -1 before it has committed a record of its own epoch."""
        role = self._state.role
        return leader.told_watermark(self._state, role) if isinstance(role, Leader) else self.high_watermark

    def replicas(self, now_ms: int) -> tuple[list[Replica], list[Replica]]:
        """Voters and observers as a leader knows them, itself among the voters; for DescribeQuorum. Empty elsewhere.

        Observers that were silent for five minutes are left out, as in Kafka. A voter has the directory id of the set
        of voters: none where that is configured (`controller.quorum.voters`), whatever it has told since.
        """
        node = self._state
        if not isinstance(node.role, Leader):
            return [], []
        end_offset = node.log.end_offset
        voters: list[Replica] = []
        known: set[Key] = set()
        for voter in node.voters:
            replica = node.role.replicas.of(voter)
            if node.is_self(voter):
                replica = Replica(voter.node_id, node.identity.directory_id, end_offset, now_ms, now_ms)
            elif replica is None:
                replica = Replica(voter.node_id, voter.directory_id)
            voters.append(replace(replica, directory_id=voter.directory_id))
            known.add((replica.node_id, replica.directory_id))
        observers = [replace(heard) for key, heard in node.role.replicas.listed(now_ms) if key not in known]
        return voters, observers

    # --- local facts -------------------------------------------------------------------------------------------------

    def start(self, now_ms: int) -> Effects:
        """Start the node, before any other call. A quorum of one leads when the effects of this call are done."""
        node = self._at(now_ms)
        if not is_believable(node.epoch, node.log.latest_epoch):
            self._out_of_epochs(node)
        if node.log.latest_epoch > node.epoch:
            node.remember(QuorumState(node.log.latest_epoch))
        if node.log.synced_offset < node.log.end_offset:
            # A fetch and a high watermark count on records that are synced; after a crash it is unknown which were.
            node.effects.flush()
        known = LeaderAt(node.state.leader_id, node.endpoints_of(node.state.leader_id))
        if known.node_id not in (NOBODY, node.node_id) and node.peer(known.node_id, known.endpoints) is not None:
            become_follower(node, node.epoch, known)
        else:
            become_unattached(node, node.epoch, patience_ms=node.waits.soon_ms() if node.others else 0)
        return self._done()

    def tick(self, now_ms: int) -> Effects:
        """Act upon the time that has passed."""
        self._at(now_ms)
        return self._done()

    def appended(self, now_ms: int) -> Effects:
        """Note an append by the leader's controller; call before `flushed`: followers then fetch while it syncs."""
        return self.tick(now_ms)

    def flushed(self, now_ms: int) -> Effects:
        """Note that a sync is done: `log.synced_offset` has moved."""
        return self.tick(now_ms)

    def leader_lost(self, now_ms: int) -> Effects:
        """Note a lost connection to the leader. Harmless while the leader lives: its followers refuse to vote."""
        node = self._at(now_ms)
        if isinstance(node.role, Follower):
            follower.lose_leader(node, node.role)
        return self._done()

    def resign(self, now_ms: int) -> Effects:
        """Shut down: a leader gives its epoch up and names its successors."""
        node = self._at(now_ms)
        if isinstance(node.role, Leader):
            become_resigned(node, is_final=True)
        return self._done()

    def step_down(self, now_ms: int) -> Effects:
        """Give the epoch up as a leader that cannot write, and stay a voter."""
        node = self._at(now_ms)
        if isinstance(node.role, Leader):
            become_resigned(node, is_final=False)
        return self._done()

    def snapshot_adopted(self, snapshot: SnapshotId, history: VoterHistory, now_ms: int) -> Effects:
        """Note that `AdoptSnapshot` is done; `history` has the voters in the snapshot."""
        follower.on_adopted(self._at(now_ms), snapshot, history)
        return self._done()

    def snapshot_refused(self, snapshot: SnapshotId, now_ms: int) -> Effects:
        """Note that the download is no whole snapshot; the log is as it was."""
        follower.on_refused(self._at(now_ms), snapshot)
        return self._done()

    # --- answers of peers --------------------------------------------------------------------------------------------

    def answered(self, send: Send, response: Message | None, now_ms: int) -> Effects:
        """Take the response to an effect `Send`; None: not reached, or no answer within `request_timeout_ms`."""
        node = self._at(now_ms)
        match send.request:
            case VoteRequest():
                election.on_voted(node, send, _as(VoteResponse, response))
            case FetchRequest():
                follower.on_fetched(node, send, _as(FetchResponse, response))
            case FetchSnapshotRequest():
                follower.on_snapshot_fetched(node, send, _as(FetchSnapshotResponse, response))
            case BeginQuorumEpochRequest():
                leader.on_begun(node, send, _as(BeginQuorumEpochResponse, response))
            case ApiVersionsRequest():
                voter_changes.on_versions(node, send, _as(ApiVersionsResponse, response))
            case UpdateRaftVoterRequest():
                auto_join.on_answered(node, send, _as(UpdateRaftVoterResponse, response))
            case AddRaftVoterRequest():
                auto_join.on_answered(node, send, _as(AddRaftVoterResponse, response))
            case RemoveRaftVoterRequest():
                auto_join.on_answered(node, send, _as(RemoveRaftVoterResponse, response))
            case EndQuorumEpochRequest():
                pass  # the peer that got it acts upon it
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

    def _out_of_epochs(self, node: NodeState) -> None:
        """Handle an epoch that cannot be, sent by a peer and written down. A node alone forgets it; a node of several
        has to keep its promises: it keeps the epoch, does not stand for election, and the others do not believe it.
        """
        node.effects.warn("raft.epoch.refused", epoch=node.epoch, own=node.log.latest_epoch)
        if not node.others:
            node.go_back(QuorumState(node.log.latest_epoch))

    # --- one call ----------------------------------------------------------------------------------------------------

    def _at(self, now_ms: int) -> NodeState:
        # The time never goes back, so that a clock that does makes no request wait longer.
        self._state.now_ms = max(self._state.now_ms, now_ms)
        return self._state

    def _answer(self, handler: Callable[[NodeState, Q], A], request: Q, now_ms: int) -> tuple[A, Effects]:
        response = handler(self._at(now_ms), request)
        return response, self._done()

    def _done(self) -> Effects:
        """Do all that is due now; returns its effects."""
        node = self._state
        for _ in range(STEPS_MAX):
            before = node.role
            _drive(node)
            if node.role is before:
                _check(node)
                return node.drain()
        raise AssertionError(f"node {node.node_id} finds no role in epoch {node.epoch}")


def _check(node: NodeState) -> None:
    """Check what holds between two calls: the role is as the disk remembers, and committed records are in the log."""
    state, role = node.state, node.role
    match role:
        case Leader():
            assert state.leader_id == node.node_id, f"node {node.node_id} leads, and its state is {state}"
            assert node.adopting is None, f"a leader adopts {node.adopting}"
        case Follower(leader=followed):
            assert state.leader_id == followed.node_id, f"node {followed.node_id} is followed, and the state is {state}"
        case Prospective():
            assert node.adopting is None, f"node {node.node_id} stands while {node.adopting} replaces its log"
        case Candidate():
            assert state.voted_id == node.node_id, f"node {node.node_id} stands, and its state is {state}"
            assert state.leader_id == NOBODY, f"node {node.node_id} stands, and its state is {state}"
    assert node.high_watermark >= 0, node.high_watermark


def _drive(node: NodeState) -> None:
    match node.role:
        case Leader() as role:
            leader.drive(node, role)
            if node.role is role:
                voter_changes.drive(node, role)
        case Follower() as role:
            follower.drive(node, role)
            if node.role is role:
                auto_join.drive(node, role)
        case Unattached() | Prospective() as role:
            election.drive(node, role)
            if node.role is role:
                follower.discover(node, role)
        case role:
            election.drive(node, role)


def _as(kind: type[A], response: Message | None) -> A | None:
    assert response is None or isinstance(response, kind), f"{response} answers another question"
    return response
