"""One node's part in the controller quorum, and the cluster's metadata as the quorum has agreed on it.

Every node has a `Quorum`. A controller votes; a broker only observes, fetching the log as a voter does. What is
committed is replayed into `metadata`, batch by batch, and the subscribers are told; what is not committed is in the log
and nowhere else, except on the leader, whose `Controller` decides on an image that runs ahead.

    RaftNode (core/raft)   the rules        <-- events, effects -->   RaftDriver   disk, peers, timers
    Quorum                 the log as metadata: replay, publish, snapshots, who leads
    Controller             where this node leads: decisions

A snapshot is taken on every node by itself. Where a follower is behind the beginning of the leader's log, it gets the
leader's snapshot: log and image are replaced, and subscribers are told what is gone and everything that is there.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypedDict, Unpack

from kavka_broker.controller.damaged_metadata import is_alone
from kavka_broker.controller.identity import Endpoints, identity_of, settings_of
from kavka_broker.controller.metadata_batches import metadata_batch
from kavka_broker.controller.metadata_loading import Recovered, bootstrap_records, recover
from kavka_broker.controller.metadata_log import BATCH_BYTES_MAX, MetadataLog
from kavka_broker.controller.publishing import DecidedBatch, Publisher, Subscriber
from kavka_broker.controller.raft_driver import Handle, RaftDriver, RunBlocking
from kavka_broker.controller.snapshot_files import SnapshotId
from kavka_broker.controller.snapshot_generator import Snapshotter
from kavka_broker.controller.start_errors import CannotStart
from kavka_broker.controller.startup_barrier import CatchingUp
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.features import level_in
from kavka_broker.core.metadata.image.replay_steps import steps_of
from kavka_broker.core.raft.effects import Effect
from kavka_broker.core.raft.node import RaftNode
from kavka_broker.core.raft.settings import Identity
from kavka_broker.core.raft.voters import Voter
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.timers import Timers
from kavka_broker.peers import Peer, Peers, Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode, InvariantViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kavka_broker.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kavka_broker.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kavka_broker.protocol.messages.vote_request import VoteRequest
from kavka_broker.protocol.records.batch import set_base_offset

log = get("raft")

#: How long a stopping leader waits for its successor to answer.
RESIGN_MS_MAX: Final = 1_000


class Seams(TypedDict, total=False):
    """Replacements for what a quorum uses of its process: tests and the simulation give their own."""

    timers: Timers
    peers: Peers
    run_blocking: RunBlocking
    random_bytes: Callable[[int], bytes]
    crash: Callable[[BaseException], None] | None


class Quorum:
    """A node of the quorum. `open` reads the newest snapshot; `start` joins, or leads a quorum of one."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata_log: MetadataLog,
        recovered: Recovered,
        identity: Identity,
        clock: Clock,
        *,
        timers: Timers | None = None,
        peers: Peers | None = None,
        run_blocking: RunBlocking = asyncio.to_thread,
        random_bytes: Callable[[int], bytes] = os.urandom,
        crash: Callable[[BaseException], None] | None = None,
    ) -> None:
        self.node_id = config.node_id
        self.metadata = recovered.committed
        self.leader_listeners: list[Callable[[], None]] = []
        # Called first at changes of leadership and at commits: the controller of this node, if it has the role.
        self.on_led: Callable[[int, int], None] = _nothing
        self.on_lost: Callable[[], None] = _nothing
        self.on_published: Callable[[], None] = _nothing
        self.on_failed: Callable[[], None] = _nothing
        self.config = config
        self.log = metadata_log
        self.clock = clock
        self.random_bytes = random_bytes
        self.ahead_at_start = recovered.ahead
        self._recovered = recovered
        self.identity = identity
        self._timers = timers
        self._peers: Peers = peers or NoPeers()
        self._run_blocking = run_blocking
        self._crash = crash or _raise
        self._node = RaftNode(
            identity,
            settings_of(config),
            recovered.state,
            recovered.history,
            metadata_log,
            self._random,
            int(clock.monotonic_ms()),
            high_watermark=0 if (newest := metadata_log.files.newest()) is None else newest.end_offset,
        )
        self._publisher = Publisher(
            config,
            metadata_log,
            self.metadata,
            clock,
            run_blocking=run_blocking,
            published=self._published,
            failed=self._fail,
            replayed_bytes=recovered.replayed_bytes,
        )
        self.subscribers: list[Subscriber] = self._publisher.subscribers
        self._runner: RaftDriver | None = None
        self._catching_up = CatchingUp(self.metadata)
        self.snapshotter = Snapshotter(config, metadata_log, self.metadata, self._publisher, clock, run_blocking)
        self._was_leader = False

    @classmethod
    def open(
        cls,
        config: BrokerConfig,
        metadata_log: MetadataLog,
        clock: Clock,
        *,
        endpoints: Endpoints | None = None,
        **seams: Unpack[Seams],
    ) -> "Quorum":
        """Replay the newest snapshot. `endpoints` are this controller's listeners, if not those of the configuration.

        Raises CannotStart for a log that this node cannot go on with.
        """
        recovered = recover(config, metadata_log)
        identity = identity_of(config, metadata_log, endpoints)
        if is_alone(config, recovered.history) and "controller" in config.roles:
            (voter,) = recovered.history.voters
            if recovered.history.kraft_version and voter.directory_id != identity.directory_id:
                raise CannotStart(
                    f"{config.metadata_log_dir}: node {config.node_id} is the only voter, with another directory than "
                    f"this one; start it on the directory that it had, or format this one again"
                )
        return cls(config, metadata_log, recovered, identity, clock, **seams)

    # --- what is known here -------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self._node.epoch

    @property
    def leader_id(self) -> int:
        return self._node.leader_id

    @property
    def is_leader(self) -> bool:
        return self._node.is_leader and not self.is_failed

    @property
    def role(self) -> str:
        return self._node.role

    @property
    def high_watermark(self) -> int:
        return self._node.high_watermark

    @property
    def voters(self) -> tuple[Voter, ...]:
        return self._node.voters

    @property
    def node(self) -> RaftNode:
        """The rules of Raft. Only the runner may change its state."""
        return self._node

    @property
    def is_failed(self) -> bool:
        return self._runner is None or self._runner.is_failed

    @property
    def runner(self) -> RaftDriver:
        assert self._runner is not None, "the quorum has not started"
        return self._runner

    @property
    def now_ms(self) -> int:
        """The time of the rules (see `RaftDriver.now_ms`)."""
        return self.runner.now_ms

    @property
    def log_end_offset(self) -> int:
        return self.log.end_offset

    def leader_endpoint(self) -> tuple[str, int] | None:
        """Host and port of the active controller."""
        return self._node.leader_endpoint

    # --- start and stop -----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the quorum. Where this node is the only voter, it leads and has written its opening on return."""
        timers = self._timers or Timers(self.clock, asyncio.get_running_loop())
        self._runner = RaftDriver(
            self._node,
            self.log,
            self,
            peers=self._peers,
            clock=self.clock,
            timers=timers,
            run_blocking=self._run_blocking,
            crash=self._failed,
            request_timeout_ms=self.config["controller.quorum.request.timeout.ms"],
            client_id=f"raft-client-{self.node_id}",
        )
        self._runner.happen(self._node.start)
        if self.ahead_at_start is not None:
            await self.caught_up()

    async def caught_up(self) -> None:
        """Wait until the image has all records up to the first high watermark heard of. Raises BrokerError."""
        await self._catching_up.wait(self._note_waiting)

    def _note_waiting(self) -> None:
        """Log what this node waits for: usually a majority of the controllers."""
        voters = [f"{voter.node_id}@{host}:{port}" for voter in self.voters for _, host, port in voter.endpoints[:1]]
        log.warning(
            "quorum.awaited",
            node=self.node_id,
            role=self.role,
            epoch=self.epoch,
            leader=self.leader_id,
            voters=",".join(voters) or "unknown",
            has=self.metadata.next_offset,
            needs="a leader" if self._catching_up.target is None else self._catching_up.target,
        )

    async def stop(self) -> None:
        """Leave the quorum. A leader resigns, so that another voter takes over at once."""
        await self.snapshotter.finish()
        self._publisher.stop()
        if self._runner is not None:
            if self._node.is_leader and len(self.voters) > 1:
                self._runner.happen(self._node.resign)
                await self._runner.until_idle()
                await self._runner.sent(RESIGN_MS_MAX)
            await self.snapshotter.take_at_stop(self._runner)
            await self._runner.stop()
        self._catching_up.fail(ErrorCode.NOT_CONTROLLER, "this node is shutting down")
        self.log.close()

    def serve(self, request: Message) -> Any:
        """The answer to another node's request about the quorum, or a future of it. Raises BrokerError."""
        if self._runner is None:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "this node has not joined the quorum yet")
        node = self._node
        handle: Handle
        match request:
            case VoteRequest():
                handle = node.vote
            case BeginQuorumEpochRequest():
                handle = node.begin_quorum_epoch
            case EndQuorumEpochRequest():
                handle = node.end_quorum_epoch
            case FetchRequest():
                handle = node.fetch
            case FetchSnapshotRequest():
                handle = node.fetch_snapshot
            case AddRaftVoterRequest():
                handle = node.add_voter
            case RemoveRaftVoterRequest():
                handle = node.remove_voter
            case UpdateRaftVoterRequest():
                handle = node.update_voter
            case _:
                raise InvariantViolation(f"{request.NAME} is no request about the quorum")
        return self.runner.serve(handle, request)

    # --- writing, where this node leads -------------------------------------------------------------------------

    def batch_of(self, records: Sequence[Message], epoch: int, metadata_version: int, now_ms: int) -> DecidedBatch:
        """The batch that the leader of `epoch` appends for these records. A thread may call it: it reads no state that
        changes. Raises BrokerError where the batch is too large.
        """
        level = level_in(records, metadata_version)
        batch = metadata_batch(records, base_offset=0, leader_epoch=epoch, now_ms=now_ms, metadata_version=level)
        if len(batch) > BATCH_BYTES_MAX:
            problem = f"the decision has {len(batch)} bytes, {BATCH_BYTES_MAX} fit in a batch; ask in smaller parts"
            raise BrokerError(ErrorCode.POLICY_VIOLATION, problem)
        return DecidedBatch(batch, records, steps_of(records))

    def append_batch(self, decided: DecidedBatch, epoch: int) -> int:
        """The first offset of a batch, appended as the leader of `epoch`. Raises BrokerError, and appends nothing."""
        self._check_leads(epoch)
        offset = self.log.end_offset
        set_base_offset(decided.batch, offset)
        self.log.append(decided.batch, self.clock.now_ms())
        self._publisher.wrote(offset, decided)
        self.runner.happen(self._node.appended)
        self.runner.syncs.want()
        return offset

    async def run_blocking(self, work: Callable[[], None]) -> None:
        """Do long work in a thread, and wait for its end."""
        await self._run_blocking(work)

    @property
    def is_busy(self) -> bool:
        """Whether an effect waits for the disk, and later events behind it."""
        return self.runner.is_busy

    async def until_idle(self) -> None:
        """Wait until no effect waits for the disk."""
        await self.runner.until_idle()

    def step_down(self) -> None:
        """Give up the lead to another voter."""
        self.runner.happen(self._node.step_down)

    def messages(self, offset: int) -> Iterator[tuple[int, Message]]:
        """The log's records from `offset` on, committed or not, with their offsets."""
        return self.log.messages(offset)

    def bootstrap_records(self) -> list[Message]:
        """The first records of a new cluster, as its directory was formatted."""
        return bootstrap_records(self.config, self.log.disk)

    def _check_leads(self, epoch: int) -> None:
        if not self._leads(epoch):
            # The rules have left the lead; the controller hears of it once earlier effects are on the disk.
            raise BrokerError(ErrorCode.NOT_CONTROLLER, f"node {self.node_id} leads epoch {epoch} no longer")

    def _leads(self, epoch: int) -> bool:
        return self._node.is_leader and self._node.epoch == epoch

    # --- what the rules have found ------------------------------------------------------------------------------

    def led(self, epoch: int, start_offset: int) -> None:
        self._publisher.forget_written()
        if not self._leads(epoch):
            return  # the rules have left this epoch's lead again
        self._was_leader = True
        self.on_led(epoch, start_offset)
        self._tell_listeners()

    def followed(self, leader_id: int, epoch: int) -> None:
        self._publisher.forget_written()
        if self._was_leader:
            self._was_leader = False
            self._publisher.finish()  # requests whose records are committed get their answers
            self.on_lost()
        self._tell_listeners()

    def _tell_listeners(self) -> None:
        for listener in self.leader_listeners:
            listener()

    def fetched(self, response: FetchResponse) -> None:
        """Catch up with the first high watermark that a leader names."""
        if self._catching_up.target is not None or response.error_code:
            return
        for topic in response.responses:
            for partition in topic.partitions:
                is_told = partition.snapshot_id.end_offset < 0 and partition.diverging_epoch.end_offset < 0
                if not partition.error_code and is_told and partition.high_watermark >= 0:
                    self.catch_up_with(partition.high_watermark)

    def catch_up_with(self, offset: int) -> None:
        """Set the offset to catch up with: records below it were there before this node started."""
        self._catching_up.aim(offset)

    def committed(self, high_watermark: int) -> None:
        self._publisher.advance(high_watermark)

    def _published(self) -> None:
        """Tell the controller and the waiters that the image has moved."""
        self.on_published()
        self._catching_up.look()
        self.snapshotter.take_if_due(self.runner)

    async def snapshot(self) -> SnapshotId | None:
        """Write a snapshot of the committed image. None where it has no new records. Raises OSError and BrokerError."""
        return await self.snapshotter.take(self.runner)

    async def adopt(self, snapshot: SnapshotId) -> list[Effect]:
        """Replace log and image by a snapshot downloaded from the leader, or refuse it."""
        effects = await self.snapshotter.adopt(snapshot, self.runner)
        self._catching_up.look()
        return effects

    # --- failure ------------------------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        self.runner.fail(error)

    def _failed(self, error: BaseException) -> None:
        self.on_failed()
        self._catching_up.fail(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log has failed")
        self._crash(error)

    def _random(self, low: int, high: int) -> int:
        return low + int.from_bytes(self.random_bytes(8), "big") % (high - low + 1)


class NoPeers:
    """Peers of a node that is the only voter: it asks no other node."""

    def to(self, host: str, port: int, *, client_id: str) -> Peer:
        """Raises Unreachable: a node without a quorum has no way to reach others."""
        raise Unreachable(f"{host}:{port}: {client_id} has no way to reach others")

    async def probe(self, host: str, port: int, timeout_ms: float) -> bool | None:
        return None


def _nothing(*_: object) -> None:
    """Do nothing: the listener of a node without a controller."""


def _raise(error: BaseException) -> None:
    raise InvariantViolation(f"the metadata log cannot go on: {error}") from error
