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

from kavka_broker.core.raft.effects import Effect, Later, Send
from kavka_broker.core.raft.log_view import LogView, SnapshotId
from kavka_broker.core.raft.quorum_state import QuorumState
from kavka_broker.core.raft.settings import Identity, Settings
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.core.raft.voters import Voter
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
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
    ) -> None: ...

    # --- what is known here ---------------------------------------------------------------------------------------

    epoch: int
    leader_id: int  # -1: nobody known
    high_watermark: int
    history: VoterHistory

    @property
    def role(self) -> str:
        """Unattached, Prospective, Candidate, Leader, Follower, Resigned or Observer."""
        raise NotImplementedError

    @property
    def is_leader(self) -> bool:
        raise NotImplementedError

    @property
    def is_voter(self) -> bool:
        raise NotImplementedError

    @property
    def voters(self) -> tuple[Voter, ...]:
        raise NotImplementedError

    @property
    def leader_endpoint(self) -> tuple[str, int] | None:
        raise NotImplementedError

    @property
    def deadline_ms(self) -> int:
        """When `tick` has something to do, if nothing happens before."""
        raise NotImplementedError

    # --- local facts ----------------------------------------------------------------------------------------------

    def start(self, now_ms: int) -> Effects:
        """Once, before anything else. A quorum of one leads when the effects of this call are done."""
        raise NotImplementedError

    def tick(self, now_ms: int) -> Effects:
        raise NotImplementedError

    def appended(self, now_ms: int) -> Effects:
        """The leader's controller has appended; call before `flushed`, so that followers fetch while we sync."""
        raise NotImplementedError

    def flushed(self, now_ms: int) -> Effects:
        raise NotImplementedError

    def leader_lost(self, now_ms: int) -> Effects:
        raise NotImplementedError

    def resign(self, now_ms: int) -> Effects:
        """Shutting down: a leader gives its epoch up and names who should follow it."""
        raise NotImplementedError

    def snapshot_adopted(self, snapshot: SnapshotId, history: VoterHistory, now_ms: int) -> Effects:
        raise NotImplementedError

    def snapshot_refused(self, snapshot: SnapshotId, now_ms: int) -> Effects:
        raise NotImplementedError

    # --- answers of peers -----------------------------------------------------------------------------------------

    def answered(self, send: Send, response: Message | None, now_ms: int) -> Effects:
        """What became of an effect `Send`; None: not reached, or no answer within `request_timeout_ms`."""
        raise NotImplementedError

    # --- requests of peers ----------------------------------------------------------------------------------------

    def vote(self, request: VoteRequest, now_ms: int) -> tuple[VoteResponse, Effects]:
        raise NotImplementedError

    def begin_quorum_epoch(
        self, request: BeginQuorumEpochRequest, now_ms: int
    ) -> tuple[BeginQuorumEpochResponse, Effects]:
        raise NotImplementedError

    def end_quorum_epoch(self, request: EndQuorumEpochRequest, now_ms: int) -> tuple[EndQuorumEpochResponse, Effects]:
        raise NotImplementedError

    def fetch(self, request: FetchRequest, now_ms: int) -> tuple[FetchResponse | Later, Effects]:
        raise NotImplementedError

    def fetch_snapshot(self, request: FetchSnapshotRequest, now_ms: int) -> tuple[FetchSnapshotResponse, Effects]:
        raise NotImplementedError

    def add_voter(self, request: AddRaftVoterRequest, now_ms: int) -> tuple[AddRaftVoterResponse | Later, Effects]:
        raise NotImplementedError

    def remove_voter(
        self, request: RemoveRaftVoterRequest, now_ms: int
    ) -> tuple[RemoveRaftVoterResponse | Later, Effects]:
        raise NotImplementedError

    def update_voter(self, request: UpdateRaftVoterRequest, now_ms: int) -> tuple[UpdateRaftVoterResponse, Effects]:
        raise NotImplementedError
