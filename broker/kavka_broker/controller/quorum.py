"""One node's part in the controller quorum, and the cluster's metadata as the quorum has agreed on it.

Every node has a `Quorum`. A controller votes; a broker only observes, fetching the log as a voter does. What is
committed is replayed into `metadata`, batch by batch, and the subscribers are told; what is not committed is in the log
and nowhere else, except on the leader, whose `Controller` decides on an image that runs ahead.

    RaftNode (core/raft)   the rules        <-- events, effects -->   RaftDriver   disk, peers, timers
    MetadataLoader         the log as metadata: replay, publish, snapshots; tells who leads
    Controller             where this node leads: decisions

A snapshot is taken on every node by itself. Where a follower is behind the beginning of the leader's log, it gets the
leader's snapshot: log and image are replaced, and subscribers are told what is gone and everything that is there.
"""

import asyncio
from dataclasses import replace
from typing import Any, Final

from kavka_broker.controller.damaged_metadata import is_alone
from kavka_broker.controller.decided_batches import DecidedBatch
from kavka_broker.controller.identity import Endpoints, identity_of, settings_of
from kavka_broker.controller.metadata_loader import MetadataLoader, leads
from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.metadata_recovery import Recovered, recover
from kavka_broker.controller.ports import Ports
from kavka_broker.controller.publishing import Subscriber
from kavka_broker.controller.raft_driver import Handle, RaftDriver
from kavka_broker.controller.snapshot_files import SnapshotId
from kavka_broker.controller.start_errors import CannotStart
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.raft.node import RaftNode
from kavka_broker.core.raft.settings import Identity
from kavka_broker.core.raft.voters import Voter
from kavka_broker.logs import get
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode, InvariantViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kavka_broker.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kavka_broker.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kavka_broker.protocol.messages.vote_request import VoteRequest
from kavka_broker.protocol.records.batch import set_base_offset

log = get("raft")

#: How long a stopping leader waits for its successor to answer.
RESIGN_MS_MAX: Final = 1_000


class Quorum:
    """A node of the quorum. `open` reads the newest snapshot; `start` joins, or leads a quorum of one."""

    def __init__(
        self, config: BrokerConfig, metadata_log: MetadataLog, recovered: Recovered, identity: Identity, ports: Ports
    ) -> None:
        self.node_id = config.node_id
        self.config = config
        self.log = metadata_log
        self.ports = ports
        self.identity = identity
        self.ahead_at_start = recovered.ahead
        newest = metadata_log.files.newest()
        #: Only the driver may change its state.
        self.node = RaftNode(
            identity,
            settings_of(config),
            recovered.state,
            recovered.history,
            metadata_log,
            ports.random,
            int(ports.clock.monotonic_ms()),
            high_watermark=0 if newest is None else newest.end_offset,
        )
        self._runner: RaftDriver | None = None
        self.loader = MetadataLoader(config, metadata_log, recovered, self.node, ports, lambda: self.runner)
        self.metadata = self.loader.metadata
        self.subscribers: list[Subscriber] = self.loader.publisher.subscribers
        self.leader_listeners = self.loader.leader_listeners

    @classmethod
    def open(
        cls,
        config: BrokerConfig,
        metadata_log: MetadataLog,
        ports: Ports,
        *,
        endpoints: Endpoints | None = None,
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
        return cls(config, metadata_log, recovered, identity, ports)

    # --- what is known here -------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self.node.epoch

    @property
    def leader_id(self) -> int:
        return self.node.leader_id

    @property
    def is_leader(self) -> bool:
        return self.node.is_leader and not self.is_failed

    @property
    def role(self) -> str:
        return self.node.role

    @property
    def high_watermark(self) -> int:
        return self.node.high_watermark

    @property
    def voters(self) -> tuple[Voter, ...]:
        return self.node.voters

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
        return self.node.leader_endpoint

    # --- start and stop -----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the quorum. Where this node is the only voter, it leads and has written its opening on return."""
        self._runner = RaftDriver(
            self.node,
            self.log,
            self.loader,
            replace(self.ports, crash=self._failed),
            timers=self.ports.timers or Timers(self.ports.clock, asyncio.get_running_loop()),
            request_timeout_ms=self.config["controller.quorum.request.timeout.ms"],
            client_id=f"raft-client-{self.node_id}",
        )
        self._runner.happen(self.node.start)
        if self.ahead_at_start is not None:
            await self.caught_up()

    async def caught_up(self) -> None:
        """Wait until the image has all records up to the first high watermark heard of. Raises BrokerError."""
        await self.loader.barrier.wait(self._note_waiting)

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
            needs="a leader" if self.loader.barrier.target is None else self.loader.barrier.target,
        )

    async def stop(self) -> None:
        """Leave the quorum. A leader resigns, so that another voter takes over at once."""
        await self.loader.snapshotter.finish()
        self.loader.publisher.stop()
        if self._runner is not None:
            if self.node.is_leader and len(self.voters) > 1:
                self._runner.happen(self.node.resign)
                await self._runner.until_idle()
                await self._runner.sent(RESIGN_MS_MAX)
            await self.loader.snapshotter.take_at_stop(self._runner)
            await self._runner.stop()
        self.loader.barrier.fail(ErrorCode.NOT_CONTROLLER, "this node is shutting down")
        self.log.close()

    def serve(self, request: Message) -> Any:
        """The answer to another node's request about the quorum, or a future of it. Raises BrokerError."""
        if self._runner is None:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "this node has not joined the quorum yet")
        node = self.node
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

    def append_batch(self, decided: DecidedBatch, epoch: int) -> int:
        """The first offset of a batch, appended as the leader of `epoch`. Raises BrokerError, and appends nothing."""
        if not leads(self.node, epoch):
            # The rules have left the lead; the controller hears of it once earlier effects are on the disk.
            raise BrokerError(ErrorCode.NOT_CONTROLLER, f"node {self.node_id} leads epoch {epoch} no longer")
        offset = self.log.end_offset
        set_base_offset(decided.batch, offset)
        self.log.append(decided.batch, self.ports.clock.now_ms())
        self.loader.publisher.wrote(offset, decided)
        self.runner.happen(self.node.appended)
        self.runner.syncs.want()
        return offset

    @property
    def is_busy(self) -> bool:
        """Whether an effect waits for the disk, and later events behind it."""
        return self.runner.is_busy

    async def until_idle(self) -> None:
        """Wait until no effect waits for the disk."""
        await self.runner.until_idle()

    def step_down(self) -> None:
        """Give up the lead to another voter."""
        self.runner.happen(self.node.step_down)

    async def snapshot(self) -> SnapshotId | None:
        """Write a snapshot of the committed image. None where it has no new records. Raises OSError and BrokerError."""
        return await self.loader.snapshotter.take(self.runner)

    def _failed(self, error: BaseException) -> None:
        self.loader.on_failed()
        self.loader.barrier.fail(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log has failed")
        self.ports.crash(error)
