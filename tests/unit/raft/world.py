"""A quorum of pure nodes with disks, a network and time that a test turns by hand.

Everything happens at a virtual millisecond: a message takes `delay_ms`, a sync `sync_ms`. A node that crashes keeps
what was persisted and the synced part of its log; how much of the rest survives is for the test to say. Messages go
through their bytes, so a field that the wire does not carry is not seen on the other side.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from kavka_broker.core.raft.effects import (
    AdoptSnapshot,
    Append,
    AppendFetched,
    Committed,
    Effect,
    Flush,
    Followed,
    Later,
    Led,
    Note,
    Persist,
    Respond,
    SaveChunk,
    Send,
    Truncate,
)
from kavka_broker.core.raft.log_view import SnapshotId
from kavka_broker.core.raft.node import RaftNode
from kavka_broker.core.raft.quorum_state import QuorumState
from kavka_broker.core.raft.settings import Identity, Settings
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.core.raft.voter_records import voter_records
from kavka_broker.core.raft.voters import Voter, read_voters, voters_record
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kavka_broker.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kavka_broker.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.leader_change_message import LeaderChangeMessage
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kavka_broker.protocol.messages.vote_request import VoteRequest
from kavka_broker.protocol.messages.voters_record import VotersRecord
from kavka_broker.protocol.records.batch import read_header
from kavka_broker.protocol.records.control import ControlType, build_control_batch
from kavka_broker.protocol.records.record import build_batch
from tests.unit.raft.memory_log import MemoryLog

CLUSTER = "quorum-of-the-test"
LISTENER = "CONTROLLER"
CONTROL_TYPES = {
    LeaderChangeMessage: ControlType.LEADER_CHANGE,
    KRaftVersionRecord: ControlType.KRAFT_VERSION,
    VotersRecord: ControlType.KRAFT_VOTERS,
}
HANDLERS: dict[type[Message], Callable[[RaftNode], Callable[[Any, int], Any]]] = {
    VoteRequest: lambda node: node.vote,
    BeginQuorumEpochRequest: lambda node: node.begin_quorum_epoch,
    EndQuorumEpochRequest: lambda node: node.end_quorum_epoch,
    FetchRequest: lambda node: node.fetch,
    FetchSnapshotRequest: lambda node: node.fetch_snapshot,
    UpdateRaftVoterRequest: lambda node: node.update_voter,
    AddRaftVoterRequest: lambda node: node.add_voter,
    RemoveRaftVoterRequest: lambda node: node.remove_voter,
}


def directory_of(node_id: int) -> bytes:
    return bytes([node_id]) * 16


def voter(node_id: int, port: int | None = None) -> Voter:
    return Voter(node_id, directory_of(node_id), ((LISTENER, f"node{node_id}", port or 9000 + node_id),))


def control_data(records: Sequence[Message], offset: int, epoch: int) -> bytes:
    versioned = [
        (CONTROL_TYPES[type(record)], encode(record, record.version))  # type: ignore[attr-defined]
        for record in records
    ]
    return bytes(build_control_batch(versioned, timestamp_ms=0, base_offset=offset, leader_epoch=epoch))


class Process:
    """One node: its disk, and while it runs its `RaftNode`."""

    def __init__(self, world: "World", identity: Identity, genesis: VoterHistory) -> None:
        self.world = world
        self.identity = identity
        self.genesis = genesis
        self.log = MemoryLog()
        self.state = QuorumState()
        self.node: RaftNode | None = None
        self.incarnation = 0
        self.is_paused = False
        self.waiting: dict[Later, Callable[[Message], None]] = {}
        self.mailbox: list[Callable[[RaftNode], list[Effect]]] = []
        self.download = b""

    @property
    def node_id(self) -> int:
        return self.identity.node_id

    def start(self) -> None:
        if self.log.pieces and self.log.end_offset < self.log.snapshots[-1].end_offset:
            # A snapshot outlived the tail that it stands for.
            self.log.begin_at(self.log.snapshots[-1])
        history, offset = self._recover()
        self.incarnation += 1
        self.node = RaftNode(
            self.identity,
            self.world.settings,
            self.state,
            history,
            self.log,
            self.world.random.randint,
            self.world.now_ms,
            high_watermark=offset,
        )
        self.handle(lambda node: node.start(self.world.now_ms))

    def _recover(self) -> tuple[VoterHistory, int]:
        history, offset = replace(self.genesis, sets=[*self.genesis.sets], versions=[*self.genesis.versions]), 0
        if self.log.pieces:
            newest = self.log.snapshots[-1]
            history, offset = history_of(self.log.pieces[newest], newest), newest.end_offset
        for batch in self.log.batches:
            if batch.base_offset >= offset and read_header(batch.data).is_control:
                learn(history, batch.data)
        return history, offset

    def crash(self, kept_offset: int | None = None) -> None:
        """Die. The log keeps what was synced, and what lies below `kept_offset`."""
        self.log.truncate(max(self.log.synced_offset, kept_offset or 0))
        self.node = None
        self.waiting.clear()
        self.mailbox.clear()
        self.is_paused = False

    def handle(self, event: Callable[[RaftNode], list[Effect]]) -> None:
        if self.is_paused:
            self.mailbox.append(event)
        elif self.node is not None:
            self.run(event(self.node))

    def resume(self) -> None:
        self.is_paused = False
        mailbox, self.mailbox = self.mailbox, []
        for event in mailbox:
            self.handle(event)

    def ask(self, request: Message, reply: Callable[[Message], None]) -> None:
        """A peer's request: answered at once or later."""

        def event(node: RaftNode) -> list[Effect]:
            response, effects = HANDLERS[type(request)](node)(request, self.world.now_ms)
            self.take(response, effects, reply)
            return []

        if isinstance(request, ApiVersionsRequest):
            reply(ApiVersionsResponse(supported_features=[SupportedFeatureKey("kraft.version", 0, 1)]))
        else:
            self.handle(event)

    def take(self, response: Message | Later, effects: list[Effect], reply: Callable[[Message], None]) -> None:
        if isinstance(response, Later):
            self.waiting[response] = reply
        self.run(effects)
        if not isinstance(response, Later):
            reply(response)

    def run(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._run(effect)
        self.world.after_step(self)

    def _run(self, effect: Effect) -> None:
        world = self.world
        match effect:
            case Persist(state):
                self.state = world.persisted(self, state)
            case Send():
                world.send(self, effect)
            case Respond(later, response):
                self.waiting.pop(later)(response)
            case Flush():
                self.flush()
            case AdoptSnapshot(snapshot):
                world.after(world.sync_ms, self.alive(lambda: self._adopt(snapshot)))
            case Append() | AppendFetched() | Truncate() | SaveChunk():
                self._write(effect)
            case Committed() | Led() | Followed() | Note():
                world.witnessed(self, effect)

    def _write(self, effect: Append | AppendFetched | Truncate | SaveChunk) -> None:
        match effect:
            case Append(records, epoch):
                self.log.append(control_data(records, self.log.end_offset, epoch))
            case AppendFetched(records, end_offset):
                self.log.append(records)
                assert self.log.end_offset == end_offset
            case Truncate(offset):
                self.log.truncate(offset)
                assert self.log.end_offset == offset, "logs part between batches"
            case SaveChunk(_, position, records):
                assert position == (len(self.download) if position else 0)
                self.download = self.download[:position] + bytes(records)

    def flush(self) -> None:
        end_offset, truncations = self.log.end_offset, self.log.truncations

        def done() -> None:
            if self.log.truncations == truncations:
                self.log.synced_offset = max(self.log.synced_offset, end_offset)
            self.handle(lambda node: node.flushed(self.world.now_ms))

        self.world.after(self.world.sync_ms, self.alive(done))

    def alive(self, step: Callable[[], None]) -> Callable[[], None]:
        """A step of this incarnation only."""
        incarnation = self.incarnation
        return lambda: step() if self.node is not None and self.incarnation == incarnation else None

    def _adopt(self, snapshot: SnapshotId) -> None:
        self.log.pieces[snapshot] = self.download
        self.log.begin_at(snapshot)
        history = history_of(self.download, snapshot)
        self.handle(lambda node: node.snapshot_adopted(snapshot, history, self.world.now_ms))

    def append(self, *values: str) -> None:
        """What the controller of a leader does: one batch, synced beside what follows."""
        assert self.node is not None
        assert self.node.is_leader, f"{self.node_id} does not lead"
        data = build_batch(
            [(None, value.encode()) for value in values],
            timestamp_ms=0,
            base_offset=self.log.end_offset,
            leader_epoch=self.node.epoch,
        )
        self.log.append(data)
        self.handle(lambda node: node.appended(self.world.now_ms))
        self.flush()

    def snapshot(self) -> SnapshotId:
        """Write down everything that is committed, as the controller does."""
        assert self.node is not None
        end_offset = self.node.high_watermark
        epoch = next(batch.epoch for batch in reversed(self.log.batches) if batch.base_offset < end_offset)
        snapshot = SnapshotId(end_offset, epoch)
        voters, version = self.node.history.at(end_offset)
        self.log.pieces[snapshot] = control_data([KRaftVersionRecord(0, version), voters_record(voters)], 0, epoch)
        return snapshot


def history_of(data: bytes, snapshot: SnapshotId) -> VoterHistory:
    history = VoterHistory()
    learn(history, data, snapshot.end_offset - 1)
    return history


def learn(history: VoterHistory, data: bytes, at: int | None = None) -> None:
    for offset, record in voter_records(memoryview(data)):
        if isinstance(record, VotersRecord):
            history.add_voters(offset if at is None else at, read_voters(record))
        elif isinstance(record, KRaftVersionRecord):
            history.add_version(offset if at is None else at, record.k_raft_version)


class World:
    """The nodes, and what happens between them."""

    def __init__(self, *, seed: int = 1, settings: Settings | None = None, kraft_version: int = 1) -> None:
        self.random = Random(seed)
        self.settings = settings or Settings()
        self.kraft_version = kraft_version
        self.now_ms = 0
        self.delay_ms = 1
        self.sync_ms = 1
        self.processes: dict[int, Process] = {}
        self.cut: set[tuple[int, int]] = set()  # from, to
        self.trace: list[str] = []
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    # --- for a test to override --------------------------------------------------------------------------------------

    def persisted(self, process: Process, state: QuorumState) -> QuorumState:
        """What is on the disk after a Persist."""
        return state

    def after_step(self, process: Process) -> None:
        """A call of a node and all its effects are done."""

    def witnessed(self, process: Process, effect: Effect) -> None:
        if isinstance(effect, Note):
            words = [f"{name}={value}" for name, value in effect.fields.items()]
            at = f"{self.now_ms:>5}ms {process.node_id}"
            self.trace.append(" ".join([at, effect.event.removeprefix("raft."), *words]))

    def deliver(self, sender: int, receiver: int, step: Callable[[], None]) -> None:
        """Carry a message; the property test loses, repeats and delays it here."""
        if (sender, receiver) not in self.cut:
            self.after(self.delay_ms, step)

    def carried(self, message: Message) -> Message:
        """What arrives of a message."""
        return through_bytes(message)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def add(self, node_id: int, voters: Sequence[Voter], *, port: int | None = None) -> Process:
        here = voter(node_id, port)
        identity = Identity(node_id, here.directory_id, CLUSTER, LISTENER, here.endpoints)
        settings = self.settings
        if not voters:
            known = [one.identity.endpoints[0] for one in self.processes.values()]
            settings = replace(settings, bootstrap_servers=tuple((host, port) for _, host, port in known))
        genesis = VoterHistory.of(voters, kraft_version=self.kraft_version)
        process = self.processes[node_id] = Process(self, identity, genesis)
        self.settings = settings
        return process

    def at(self, host: str, port: int) -> Process | None:
        """Who listens at an address."""
        return next(
            (process for process in self.processes.values() if process.identity.endpoints[0][1:] == (host, port)),
            None,
        )

    def leader(self) -> Process | None:
        """Who leads the largest epoch."""
        leading = [
            process for process in self.processes.values() if process.node is not None and process.node.is_leader
        ]
        return max(leading, key=lambda one: one.node.epoch if one.node else -1, default=None)

    # --- network -----------------------------------------------------------------------------------------------------

    def send(self, sender: Process, effect: Send) -> None:
        receiver = self.at(effect.peer.host, effect.peer.port)
        answered = [False]

        def come_back(response: Message | None) -> None:
            if not answered[0]:
                answered[0] = True
                sender.handle(lambda node: node.answered(effect, response, self.now_ms))

        back = sender.alive(lambda: come_back(None))
        self.after(self.settings.request_timeout_ms, back)
        if receiver is None or (receiver.node is None and (sender.node_id, receiver.node_id) not in self.cut):
            self.after(self.delay_ms, sender.alive(lambda: self._refuse(sender, effect, come_back)))
            return
        request = self.carried(effect.request)

        def reply(response: Message) -> None:
            received = self.carried(response)
            step = sender.alive(lambda: come_back(received))
            self.deliver(receiver.node_id, sender.node_id, step)

        def arrive() -> None:
            # A request may outlive the process that it was sent to, and meet the next one there.
            if receiver.node is not None:
                receiver.ask(request, reply)

        self.deliver(sender.node_id, receiver.node_id, arrive)

    def _refuse(self, sender: Process, effect: Send, come_back: Callable[[Message | None], None]) -> None:
        """Nobody listens there; the shell tells the node so where it was the leader."""
        come_back(None)
        if isinstance(effect.request, FetchRequest) and sender.node is not None:
            self.tell_lost(sender, effect.peer.node_id)

    def tell_lost(self, process: Process, leader_id: int) -> None:
        if process.node is not None and process.node.leader_id == leader_id:
            process.handle(lambda node: node.leader_lost(self.now_ms))

    def crash(self, node_id: int, kept_offset: int | None = None) -> None:
        """Crash the process; peers with a connection to it notice."""
        self.processes[node_id].crash(kept_offset)
        for other in self.processes.values():
            if (node_id, other.node_id) not in self.cut:
                self.after(self.delay_ms, other.alive(partial(self.tell_lost, other, node_id)))

    def isolate(self, node_id: int) -> None:
        for other in self.processes:
            self.cut |= {(node_id, other), (other, node_id)}

    # --- time --------------------------------------------------------------------------------------------------------

    def after(self, delay_ms: int, step: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._count, step))

    def run(self, duration_ms: int) -> None:
        """Let time pass, and happen what has to."""
        end_ms = self.now_ms + duration_ms
        while (due_ms := self._next_ms()) <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            if self._events and self._events[0][0] <= self.now_ms:
                heapq.heappop(self._events)[2]()
                continue
            for process in self._live():
                if process.node is not None and process.node.deadline_ms <= self.now_ms:
                    process.handle(lambda node: node.tick(self.now_ms))
                    assert process.node.deadline_ms > self.now_ms, f"{process.node_id} has nothing to do, at once"
        self.now_ms = end_ms

    def _live(self) -> list[Process]:
        return [process for process in self.processes.values() if process.node is not None and not process.is_paused]

    def _next_ms(self) -> int:
        deadlines = [one.node.deadline_ms for one in self._live() if one.node is not None]
        return min([*deadlines, *(event[0] for event in self._events[:1])], default=1 << 62)


def through_bytes(message: Message) -> Message:
    version = message.VERSIONS[1]
    return decode(type(message), version, encode(message, version))
