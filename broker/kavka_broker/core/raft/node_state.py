"""What all the rules of one node share: who it is, what it must not forget, what it is at the moment, what it asks for.

The rules are functions over a `NodeState`, a module for each concern. They change the role only through `transitions`,
and the outside only through effects.
"""

from collections.abc import Callable, Sequence

from kavka_broker.core.raft.effect_queue import EffectQueue
from kavka_broker.core.raft.effects import Append, Committed, Effect, NodeAddress, Persist
from kavka_broker.core.raft.election_waits import ElectionWaits
from kavka_broker.core.raft.log_view import LogView, SnapshotId
from kavka_broker.core.raft.quorum_state import NOBODY, QuorumState, is_believable
from kavka_broker.core.raft.roles import (
    Follower,
    Leader,
    LeaderAt,
    Prospective,
    Role,
    Unattached,
    endpoint_of,
)
from kavka_broker.core.raft.settings import Identity, Settings
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.core.raft.voters import Voter, read_voters
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.voters_record import VotersRecord
from kavka_broker.protocol.uuids import ZERO


class NodeState:
    """The state of one node."""

    def __init__(
        self,
        identity: Identity,
        settings: Settings,
        state: QuorumState,
        history: VoterHistory,
        log: LogView,
        random: Callable[[int, int], int],
        now_ms: int,
    ) -> None:
        self.identity = identity
        self.settings = settings
        self.state = state
        self.history = history
        self.log = log
        self.random = random
        self.now_ms = now_ms
        self.role: Role = Unattached(now_ms)
        self.high_watermark = 0
        self.adopting: SnapshotId | None = None  # a snapshot replaces the log: neither fetch nor stand
        self.effects = EffectQueue()
        self.waits = ElectionWaits(settings, random)
        self._end_offset: int | None = None

    # --- identity ----------------------------------------------------------------------------------------------------

    @property
    def node_id(self) -> int:
        return self.identity.node_id

    @property
    def epoch(self) -> int:
        return self.state.leader_epoch

    @property
    def voters(self) -> tuple[Voter, ...]:
        return self.history.voters

    def is_self(self, voter: Voter) -> bool:
        """Whether a voter is this node, with this disk."""
        return voter.node_id == self.node_id and voter.directory_id in (ZERO, self.identity.directory_id)

    def has_vote(self, node_id: int, directory_id: bytes) -> bool:
        """Whether a replica votes; by its id alone where the voters are named without their directories."""
        return any(voter.node_id == node_id and voter.directory_id in (ZERO, directory_id) for voter in self.voters)

    @property
    def is_voter(self) -> bool:
        return self.identity.is_controller and any(map(self.is_self, self.voters))

    @property
    def is_forgetful(self) -> bool:
        """Whether the disk has lost records that other nodes count on. Until it has them again from a leader, the node
        neither stands nor votes: otherwise a leader could be elected that lacks committed records.
        """
        return self.end_offset < self.log.promised_offset

    @property
    def may_stand(self) -> bool:
        """Whether this node stands for election: as a voter, or while its removal is not known to be committed.

        The record of the removal may be on this node alone, and then only its log can win. Such
        a node does not count its own vote, leads until the record is committed, and goes (Raft dissertation, 4.2.2).
        """
        if self.is_forgetful:
            return False
        if self.is_voter:
            return True
        is_open = any(self.is_self(voter) for voters in self.history.open_sets(self.high_watermark) for voter in voters)
        return self.identity.is_controller and is_open

    @property
    def others(self) -> tuple[Voter, ...]:
        return tuple(voter for voter in self.voters if voter.node_id != self.node_id)

    @property
    def leader(self) -> LeaderAt | None:
        """The leader of the epoch, if this node knows it."""
        match self.role:
            case Leader():
                return LeaderAt(self.node_id, self.identity.endpoints)
            case Follower(leader=leader) | Prospective(leader=leader):
                return leader
            case _:
                return None

    def leader_peer(self) -> NodeAddress | None:
        """The leader's address on the quorum's listener."""
        leader = self.leader
        return None if leader is None else self.peer(leader.node_id, leader.endpoints)

    def peer(self, node_id: int, endpoints: Sequence[tuple[str, str, int]]) -> NodeAddress | None:
        at = endpoint_of(endpoints, self.identity.listener)
        return None if at is None else NodeAddress(node_id, *at)

    def endpoints_of(self, node_id: int) -> tuple[tuple[str, str, int], ...]:
        """The endpoints of a voter, by the log or the configuration."""
        return next((voter.endpoints for voter in self.voters if voter.node_id == node_id), ())

    def believes(self, epoch: int) -> bool:
        """Whether this epoch can be; logs a warning where it cannot."""
        if is_believable(epoch, self.epoch):
            return True
        self.effects.warn("raft.epoch.refused", epoch=epoch, own=self.epoch)
        return False

    # --- effects -----------------------------------------------------------------------------------------------------

    def drain(self) -> list[Effect]:
        """Drain the effects of the call that ends here."""
        self._end_offset = None
        return self.effects.drain()

    def remember(self, state: QuorumState) -> None:
        """Put the state on the disk, before any effect that follows."""
        if state == self.state:
            return
        assert state.leader_epoch >= self.epoch, f"epoch {self.epoch} cannot go back to {state.leader_epoch}"
        if state.leader_epoch == self.epoch:
            assert self.state.voted_id in (NOBODY, state.voted_id), f"two votes in an epoch: {self.state} and {state}"
            assert self.state.leader_id in (NOBODY, state.leader_id), f"two leaders: {self.state} and {state}"
        self.state = state
        self.effects.persist(state)

    def go_back(self, state: QuorumState) -> None:
        """Go back behind an epoch that cannot be, where no other node counts on this node's votes."""
        assert not self.others, f"{self.others} count on this node's votes"
        assert state.leader_epoch <= self.epoch, f"epoch {self.epoch} goes on to {state.leader_epoch}"
        self.state = state
        self.effects.emit(Persist(state))

    # --- log ---------------------------------------------------------------------------------------------------------

    @property
    def end_offset(self) -> int:
        """The end of the log once the effects of this call have run."""
        return self.log.end_offset if self._end_offset is None else self._end_offset

    def append(self, records: Sequence[Message]) -> int:
        """Write one batch of control records, as the leader. Voters in it count at once, not from their commit on."""
        assert records, "a batch has records"
        assert self.state.leader_id == self.node_id, f"node {self.node_id} appends, and {self.state} is the lead"
        assert self.adopting is None, f"the log is being replaced by {self.adopting}"
        base_offset = self.end_offset
        self.effects.emit(Append(tuple(records), self.epoch))
        for offset, record in enumerate(records, base_offset):
            self.learn_control(offset, record)
        self._end_offset = base_offset + len(records)
        return base_offset

    def learn_control(self, offset: int, record: Message) -> None:
        """Take in a control record of the log about the quorum itself."""
        match record:
            case VotersRecord():
                self.history.add_voters(offset, read_voters(record))
                self.effects.note("raft.voters.changed", offset=offset, voters=[voter.node_id for voter in self.voters])
            case KRaftVersionRecord():
                self.history.add_version(offset, record.k_raft_version)

    def moved_to(self, end_offset: int) -> None:
        """Note that an effect of this call makes the log end here."""
        assert end_offset >= self.high_watermark, f"the log would end at {end_offset}, below what was committed"
        self._end_offset = end_offset

    def commit(self, offset: int) -> bool:
        """Move the high watermark, which never goes back."""
        if offset <= self.high_watermark:
            return False
        assert offset <= self.end_offset, f"{offset} is committed of a log that ends at {self.end_offset}"
        assert offset >= self.log.start_offset, f"{offset} is committed of a log from {self.log.start_offset} on"
        self.high_watermark = offset
        self.effects.emit(Committed(offset))
        self.history.forget_below(self.log.start_offset)
        return True

    # --- time --------------------------------------------------------------------------------------------------------

    def after(self, delay_ms: int) -> int:
        assert delay_ms >= 0, delay_ms
        return self.now_ms + delay_ms
