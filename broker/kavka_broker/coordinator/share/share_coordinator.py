"""The share coordinator (KIP-932): states whose partition of `__share_group_state` this broker leads.

Partitions come and go (`led_shards`); one that comes is read (`share_loading`) and then served (`ShareShard`). Leaders
of partitions write what their members have acknowledged, and a new leader reads it.
The log is not compacted: from time to time it is pruned below the oldest snapshot that still counts.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.coordinator.led_shards import LedShards, Steps
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.share.share_loading import load
from kavka_broker.coordinator.share.share_shard import ShareShard
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import SHARE_STATE_TOPIC
from kavka_broker.core.share.share_states import SharePartitionKey, ShareState, ShareStates, WrittenState
from kavka_broker.loop.paced_work import run_paced
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.uuids import from_text, to_text
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.partition import Partition


class ShareCoordinatorSettings(NamedTuple):
    """Settings, by the ends of their names in `share.coordinator.`."""

    updates_max: int  # snapshot.update.records.per.snapshot
    write_timeout_ms: int  # write.timeout.ms
    cold_interval_ms: int  # cold.partition.snapshot.interval.ms
    prune_interval_ms: int  # state.topic.prune.interval.ms


class ShareCoordinator:
    """Serves the states of this broker. Made before any replica is hosted; `start` begins the periodic work."""

    def __init__(
        self, settings: ShareCoordinatorSettings, metadata: Metadata, replicas: ReplicaManager, pacing: Pacing
    ) -> None:
        self.settings = settings
        self._metadata = metadata
        self._clock, self._timers = pacing.clock, pacing.timers
        steps = Steps(self._new_shard, self._load, ShareShard.open, ShareShard.close)
        self._led = LedShards(SHARE_STATE_TOPIC, steps, metadata, replicas, pacing)
        self._led.follow()

    def start(self) -> None:
        self._timers.after(self.settings.cold_interval_ms, self._tend)
        self._timers.after(self.settings.prune_interval_ms, self._prune)

    def close(self) -> None:
        """Stop, with this broker: another one goes on."""
        for shard in self._led.give_up_all():
            shard.close()

    # --- which partitions ---------------------------------------------------------------------------------------

    def _new_shard(self, partition: Partition) -> ShareShard:
        states = ShareStates(self.settings.updates_max)
        return ShareShard(partition, states, self._clock, self._timers, self.settings.write_timeout_ms)

    async def _load(self, shard: ShareShard, partition: Partition) -> dict[str, int]:
        await load(partition, shard.states)
        return {"states": len(shard.states.by_key)}

    # --- what is asked of it ------------------------------------------------------------------------------------

    def partition_of(self, coordinator_key: str) -> int | None:
        """Return the partition of a key "group:topic id:partition"; None before the topic exists."""
        return self._led.partition_of(coordinator_key)

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
        return self._led.of(coordinator_key(key))

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
        return self._led.loaded

    def _tend(self) -> None:
        again = partial(self._timers.after, self.settings.cold_interval_ms, self._tend)
        run_paced(self._timers, self._of_each_shard(self._tending), then=again)

    def _tending(self, shard: ShareShard) -> Iterator[None]:
        """Forget partitions of deleted topics, and write snapshots of those that are not in use."""
        yield from shard.forget(lambda key: not self._exists(key))
        yield from shard.snapshot_cold(self.settings.cold_interval_ms)

    def _prune(self) -> None:
        again = partial(self._timers.after, self.settings.prune_interval_ms, self._prune)
        run_paced(self._timers, self._of_each_shard(ShareShard.prune), then=again)

    def _of_each_shard(self, work_of: Callable[[ShareShard], Iterator[None]]) -> Iterator[None]:
        """Work on one shard after the other, a slice of one a step, as long as this broker serves it."""
        for shard in self.shards:
            work = work_of(shard)
            while not shard.is_closed and next(work, work) is None:
                yield
            yield


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
