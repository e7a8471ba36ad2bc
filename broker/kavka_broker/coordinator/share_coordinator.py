"""The share coordinator (KIP-932): states whose partition of `__share_group_state` this broker leads.

The replica manager calls `leadership`; a partition that comes is read (`share_loading`) and then served (`ShareShard`),
one that goes is closed. Leaders of partitions write what their members have acknowledged, and a new leader reads it.
The log is not compacted: from time to time it is pruned below the oldest snapshot that still counts.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kavka_broker.coordinator.partitioning import partition_of
from kavka_broker.coordinator.share_loading import load
from kavka_broker.coordinator.share_shard import ShareShard
from kavka_broker.coordinator.transactional_offsets import Waiting
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import SHARE_STATE_TOPIC
from kavka_broker.core.share.share_states import SharePartitionKey, ShareState, ShareStates, WrittenState
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.uuids import from_text, to_text
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.partition import Partition

log = get("coordinator")

BETWEEN_SLICES_MS: Final = 1
LOAD_AGAIN_MS: Final = 1000
"""Between two loads of a log that could not be read."""


class ShareCoordinatorSettings(NamedTuple):
    """Settings, by the ends of their names in `share.coordinator.`."""

    updates_max: int  # snapshot.update.records.per.snapshot
    write_timeout_ms: int  # write.timeout.ms
    cold_interval_ms: int  # cold.partition.snapshot.interval.ms
    prune_interval_ms: int  # state.topic.prune.interval.ms


class ShareCoordinator:
    """Serves the states of this broker. Made before any replica is hosted; `start` begins the periodic work."""

    def __init__(
        self,
        settings: ShareCoordinatorSettings,
        metadata: Metadata,
        replicas: ReplicaManager,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self.settings = settings
        self._metadata = metadata
        self._openings = replicas.openings
        self._clock = clock
        self._timers = timers
        self._shards: dict[int, ShareShard] = {}
        self._loads: dict[int, asyncio.Task[None]] = {}
        replicas.leadership_listeners.append(self.leadership)
        for partition in replicas.partitions:
            if partition.is_leader:
                self.leadership(partition, True)

    def start(self) -> None:
        self._timers.after(self.settings.cold_interval_ms, self._tend)
        self._timers.after(self.settings.prune_interval_ms, self._prune)

    def close(self) -> None:
        """Stop, with this broker: another one goes on."""
        for index in list(self._shards):
            self._resign(index)

    # --- which partitions ---------------------------------------------------------------------------------------

    def leadership(self, partition: Partition, is_leader: bool) -> None:
        """Take up or give up the states of `partition`, which this broker leads now or leads no longer."""
        if partition.topic != SHARE_STATE_TOPIC:
            return
        known = self._shards.get(partition.index)
        if is_leader and known is not None and known.partition is partition:
            return  # a new epoch of the same leader: no other broker has written
        self._resign(partition.index)
        if is_leader:
            self._elect(partition)

    def _resign(self, index: int) -> None:
        task = self._loads.pop(index, None)
        if task is not None:
            task.cancel()
        shard = self._shards.pop(index, None)
        if shard is not None:
            shard.close()

    def _elect(self, partition: Partition) -> None:
        states = ShareStates(self.settings.updates_max)
        shard = ShareShard(partition, states, self._clock, self._timers, self.settings.write_timeout_ms)
        self._shards[partition.index] = shard
        task = asyncio.get_running_loop().create_task(
            self._load(shard, partition), name=f"load share states {partition.index}"
        )
        self._loads[partition.index] = watch(task)

    async def _load(self, shard: ShareShard, partition: Partition) -> None:
        index, started_ms = partition.index, self._clock.monotonic_ms()
        records = 0
        try:
            if partition.log.log_start_offset == partition.log.log_end_offset:
                await self._secured(partition)
            else:
                records = await load(partition, shard.states)
        except Exception as error:
            # Any error ends the load: brokers that are told of a load that has died would wait forever.
            log.error("share_states.not_loaded", partition=index, reason=str(error))
            shard.is_loading, shard.is_unreadable = False, True
            if isinstance(error, BrokerError | ProtocolViolation):
                self._timers.after(LOAD_AGAIN_MS, self._load_again, shard, partition)
                return
            raise
        finally:
            if self._shards.get(index) is shard:  # otherwise resigned: the entry may belong to a later load
                self._loads.pop(index, None)
        took_ms = round(self._clock.monotonic_ms() - started_ms)
        if records:
            log.info("share_states.loaded", partition=index, states=len(shard.states.by_key), took_ms=took_ms)
        shard.open()

    async def _secured(self, partition: Partition) -> None:
        """Wait until a thread has synced the id of a new log: the first append would sync it on the loop."""
        securing = self._openings.when_secured(partition.log)
        if securing is not None:
            await securing

    def _load_again(self, shard: ShareShard, partition: Partition) -> None:
        """Read a log again that could not be read, if this broker leads it still: no other would serve its states."""
        if self._shards.get(partition.index) is shard:
            shard.close()
            self._elect(partition)

    # --- what is asked of it ------------------------------------------------------------------------------------

    def partition_of(self, coordinator_key: str) -> int | None:
        """Return the partition of a key "group:topic id:partition"; None before the topic exists."""
        topic = self._metadata.topics.get(SHARE_STATE_TOPIC)
        return None if topic is None else partition_of(coordinator_key, len(topic.partitions))

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> Waiting | None:
        """Begin a new state; returns a future of its commit, None if it is committed. Raises BrokerError."""
        shard = self._shard(key)
        self._check_topic(key)
        return shard.initialize(key, state_epoch, start_offset)

    def write(self, key: SharePartitionKey, written: WrittenState) -> Waiting | None:
        """As `initialize`, for what the partition's leader has decided."""
        shard = self._shard(key)
        self._check_topic(key)
        return shard.write(key, written)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> tuple[ShareState, Waiting | None]:
        """Return the state for a leader of the partition, with a future of its commit. Raises BrokerError."""
        shard = self._shard(key)
        self._check_topic(key)
        return shard.read(key, leader_epoch)

    def summarize(self, key: SharePartitionKey) -> tuple[ShareState | None, Waiting | None]:
        """Return the state; None for a share partition without one. Raises BrokerError."""
        shard = self._shard(key)
        self._check_topic(key)
        return shard.summarize(key)

    def delete(self, key: SharePartitionKey) -> Waiting | None:
        """As `initialize`, for the end of a state."""
        shard = self._shard(key)
        self._check_topic(key)
        return shard.delete(key)

    def _shard(self, key: SharePartitionKey) -> ShareShard:
        """Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE."""
        if not key.group_id.strip() or key.partition < 0:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "a share partition has a group, and a partition from 0 on")
        index = self.partition_of(coordinator_key(key))
        shard = None if index is None else self._shards.get(index)
        if shard is None:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        if shard.is_unreadable:
            problem = f"{SHARE_STATE_TOPIC}-{index} cannot be read; the broker's log says why"
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, problem)
        if shard.is_loading:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _check_topic(self, key: SharePartitionKey) -> None:
        """Raises UNKNOWN_TOPIC_OR_PARTITION."""
        if not self._exists(key):
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _exists(self, key: SharePartitionKey) -> bool:
        topic = self._metadata.topics.by_id(key.topic_id)
        return topic is not None and key.partition in topic.partitions

    # --- periodic work ------------------------------------------------------------------------------------------

    @property
    def shards(self) -> list[ShareShard]:
        """The shards that have loaded, in the order of their partitions."""
        shards = (self._shards[index] for index in sorted(self._shards))
        return [shard for shard in shards if not shard.is_loading and not shard.is_unreadable]

    def _tend(self) -> None:
        self._go_on(self._of_each_shard(self._tending), self.settings.cold_interval_ms, self._tend)

    def _tending(self, shard: ShareShard) -> Iterator[None]:
        """Forget partitions of deleted topics, and write snapshots of those that are not in use."""
        yield from shard.forget(lambda key: not self._exists(key))
        yield from shard.snapshot_cold(self.settings.cold_interval_ms)

    def _prune(self) -> None:
        self._go_on(self._of_each_shard(ShareShard.prune), self.settings.prune_interval_ms, self._prune)

    def _of_each_shard(self, work_of: Callable[[ShareShard], Iterator[None]]) -> Iterator[None]:
        """Work on one shard after the other, a slice of one a step, as long as this broker serves it."""
        for shard in self.shards:
            work = work_of(shard)
            while not shard.is_closed and next(work, work) is None:
                yield
            yield

    def _go_on(self, work: Iterator[None], interval_ms: int, again: Callable[[], None]) -> None:
        """Do a slice of work, and the next slice in a later turn; all `again` at the interval after its end."""
        is_done = True
        try:
            is_done = next(work, work) is work
        finally:
            if is_done:
                self._timers.after(interval_ms, again)
            else:
                self._timers.after(BETWEEN_SLICES_MS, self._go_on, work, interval_ms, again)


def coordinator_key(key: SharePartitionKey) -> str:
    """Return the text by which a share partition's coordinator is found."""
    return f"{key.group_id}:{to_text(key.topic_id)}:{key.partition}"


def check_coordinator_key(text: str) -> None:
    """Check that a text names a share partition. Raises INVALID_REQUEST."""
    *group, topic_id, partition = ("::" + text).split(":")
    try:
        from_text(topic_id)
        index = int(partition)
    except ValueError:
        index = -1
    if index < 0 or not ":".join(group).strip(":").strip():
        problem = f"{text[:100]!r} is no key of a share partition; write group:topicId:partition"
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)
