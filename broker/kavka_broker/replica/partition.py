"""One replica of one partition on this broker: its log, its role, and who waits on it.

The rules are in `core.partition`, the files in `storage`; this holds the two together. All of it runs on the loop, so
an append and the move of the high watermark are one step that nothing can come between.
"""

import asyncio

from kavka_broker.core.metadata.topics import PartitionState
from kavka_broker.core.partition.high_watermark import advance, effective_min_isr
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.replica.purgatory import CommitWaiters, FetchWaiter
from kavka_broker.seams import Clock
from kavka_broker.storage.log import Appended, Chunk, Log, Origin

ACKS_ALL = -1


class Partition:
    """A replica of `topic`-`index`. `log` is open as long as the partition is hosted here."""

    __slots__ = (
        "_clock",
        "_committed",
        "_node_id",
        "bytes_in",
        "bytes_out",
        "high_watermark",
        "index",
        "is_leader",
        "log",
        "messages_in",
        "state",
        "topic",
        "topic_id",
        "watchers",
    )

    def __init__(self, topic: str, index: int, log: Log, state: PartitionState, node_id: int, clock: Clock) -> None:
        self.topic = topic
        self.topic_id = log.topic_id
        self.index = index
        self.log = log
        self.high_watermark = log.log_start_offset
        self.watchers: list[FetchWaiter] = []
        self.bytes_in = self.bytes_out = self.messages_in = 0
        self._committed = CommitWaiters()
        self._node_id = node_id
        self._clock = clock
        self.is_leader = False
        self.apply(state)

    def apply(self, state: PartitionState) -> None:
        """Take over what the controller has decided: leader, epochs, replicas, ISR."""
        was_leader = self.is_leader
        self.state = state
        self.is_leader = state.leader == self._node_id
        if self.is_leader:
            self._advance(0)
        elif was_leader:
            self._committed.fail(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        if was_leader != self.is_leader:
            self.interrupt()

    @property
    def leader_epoch(self) -> int:
        return self.state.leader_epoch

    @property
    def last_stable_offset(self) -> int:
        """Where a read_committed consumer stops. Without open transactions this is the high watermark."""
        return self.high_watermark

    def append(self, batches: memoryview, acks: int = ACKS_ALL, origin: Origin = Origin.CLIENT) -> Appended:
        """Append record batches as the leader; their base offsets and epochs are written into `batches`.

        Raises BrokerError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, or what the log refuses.
        """
        if not self.is_leader:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks == ACKS_ALL and len(self.state.isr) < self._min_isr():
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS)
        appended = self.log.append_as_leader(batches, self.state.leader_epoch, self._clock.now_ms(), origin)
        if not appended.duplicate:
            size_bytes = len(batches)
            self.bytes_in += size_bytes
            self.messages_in += appended.last_offset - appended.base_offset + 1
            self._advance(size_bytes)
        return appended

    def when_committed(self, offset: int) -> asyncio.Future[None] | None:
        """None where `offset` is committed already, else a future; it fails when leadership is lost."""
        if offset < self.high_watermark:
            return None
        return self._committed.add(offset + 1)

    def read(self, offset: int, bytes_max: int, upper_offset: int, at_least_one: bool) -> Chunk:
        """Whole batches from the one that holds `offset`, below `upper_offset`. Raises OFFSET_OUT_OF_RANGE."""
        return self.log.read(offset, bytes_max, upper_offset=upper_offset, at_least_one=at_least_one)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """KIP-320: the client's idea of the leader epoch must be ours. -1 does not say."""
        if current_leader_epoch in (-1, self.state.leader_epoch):
            return
        if current_leader_epoch < self.state.leader_epoch:
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
        raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def interrupt(self) -> None:
        """Wake every fetch that waits here."""
        for watcher in list(self.watchers):
            watcher.interrupt()

    def close(self, error: ErrorCode) -> None:
        """The partition leaves this broker: whoever waits learns why."""
        self.is_leader = False
        self._committed.fail(BrokerError(error))
        self.interrupt()

    def _min_isr(self) -> int:
        return effective_min_isr(self.log.config.min_insync_replicas, len(self.state.replicas))

    def _advance(self, size_bytes: int) -> None:
        # Followers report their ends with replication; until then only a sole replica may be in the ISR.
        before = self.high_watermark
        ends = [self.log.log_end_offset] * len(self.state.isr)
        self.high_watermark = advance(before, ends, self._min_isr())
        if self.high_watermark == before:
            return
        if len(self._committed):
            self._committed.reached(self.high_watermark)
        if self.watchers:
            for watcher in list(self.watchers):
                watcher.progressed(size_bytes)
