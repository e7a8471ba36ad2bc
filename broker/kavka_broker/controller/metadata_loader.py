"""Keeps the image of the metadata as the quorum has agreed on it, and tells of it and of the lead.

The driver of the rules calls it: for records that are committed, for a snapshot that takes the place of the log, and
for each change of the leader. The controller of this node, if it has one, hears of all that first.
"""

from collections.abc import Callable

from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.metadata_recovery import Recovered
from kavka_broker.controller.ports import Ports
from kavka_broker.controller.publishing import Publisher
from kavka_broker.controller.raft_driver import RaftDriver
from kavka_broker.controller.snapshot_files import SnapshotId
from kavka_broker.controller.snapshot_generator import Snapshotter
from kavka_broker.controller.startup_barrier import CatchingUp
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.raft.effects import Effect
from kavka_broker.core.raft.node import RaftNode
from kavka_broker.protocol.messages.fetch_response import FetchResponse


class MetadataLoader:
    """The host of the driver: its image is `metadata`."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata_log: MetadataLog,
        recovered: Recovered,
        node: RaftNode,
        ports: Ports,
        driver: Callable[[], RaftDriver],
    ) -> None:
        self.metadata = recovered.committed
        self.leader_listeners: list[Callable[[], None]] = []
        # Called first at changes of leadership and at commits: the controller of this node, if it has the role.
        self.on_led: Callable[[int, int], None] = _nothing
        self.on_lost: Callable[[], None] = _nothing
        self.on_published: Callable[[], None] = _nothing
        self.on_failed: Callable[[], None] = _nothing
        self._node = node
        self._driver = driver
        self.barrier = CatchingUp(self.metadata)
        self.publisher = Publisher(
            config,
            metadata_log,
            self.metadata,
            ports,
            published=self._published,
            failed=lambda error: driver().fail(error),
            replayed_bytes=recovered.replayed_bytes,
        )
        self.snapshotter = Snapshotter(config, metadata_log, self.metadata, self.publisher, ports)
        self._was_leader = False

    def led(self, epoch: int, start_offset: int) -> None:
        self.publisher.forget_written()
        if not leads(self._node, epoch):
            return  # the rules have left this epoch's lead again
        self._was_leader = True
        self.on_led(epoch, start_offset)
        self._tell_listeners()

    def followed(self, leader_id: int, epoch: int) -> None:
        self.publisher.forget_written()
        if self._was_leader:
            self._was_leader = False
            self.publisher.finish()  # requests whose records are committed get their answers
            self.on_lost()
        self._tell_listeners()

    def _tell_listeners(self) -> None:
        for listener in self.leader_listeners:
            listener()

    def fetched(self, response: FetchResponse) -> None:
        """Catch up with the first high watermark that a leader names."""
        if self.barrier.target is not None or response.error_code:
            return
        for topic in response.responses:
            for partition in topic.partitions:
                is_told = partition.snapshot_id.end_offset < 0 and partition.diverging_epoch.end_offset < 0
                if not partition.error_code and is_told and partition.high_watermark >= 0:
                    self.barrier.aim(partition.high_watermark)

    def committed(self, high_watermark: int) -> None:
        self.publisher.advance(high_watermark)

    async def adopt(self, snapshot: SnapshotId) -> list[Effect]:
        """Replace log and image by a snapshot downloaded from the leader, or refuse it."""
        effects = await self.snapshotter.adopt(snapshot, self._driver())
        self.barrier.look()
        return effects

    def _published(self) -> None:
        """Tell the controller and the waiters that the image has moved."""
        self.on_published()
        self.barrier.look()
        self.snapshotter.take_if_due(self._driver())


def leads(node: RaftNode, epoch: int) -> bool:
    """Whether this node leads this very epoch."""
    return node.is_leader and node.epoch == epoch


def _nothing(*_: object) -> None:
    """Do nothing: the listener of a node without a controller."""
