"""The groups that this broker coordinates: those whose partition of `__consumer_offsets` it leads.

Partitions come and go (`led_shards`); one that comes is read (`group_loading`) and then served (`Shard`). Handlers ask
`shard(group_id)` and talk to it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain

from kavka_broker.coordinator.groups.deleted_topics import DeletedTopics
from kavka_broker.coordinator.groups.group_loading import Loaded, load
from kavka_broker.coordinator.groups.group_settings import settings_of
from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.coordinator.groups.offset_expiration import OFFSETS_PER_SLICE_MAX
from kavka_broker.coordinator.internal_topic import InternalTopic, Topics
from kavka_broker.coordinator.led_shards import LedShards, Steps
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.share.share_state_client import ShareStateClient
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import OFFSETS_TOPIC
from kavka_broker.logs import get
from kavka_broker.loop.paced_work import run_paced
from kavka_broker.loop.slices import Work, at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.partition import Partition

log = get("coordinator")

EXPIRE_STAGGER_MS = 10
"""The pause between two partitions, so that expiry never holds the loop for all of them at once."""


class GroupCoordinator:
    """Serves the groups of this broker. Made before any replica is hosted; `start` begins the periodic work."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: Metadata,
        topics: Topics,
        replicas: ReplicaManager,
        pacing: Pacing,
        new_member_suffix: Callable[[], str],
    ) -> None:
        self.new_member_suffix = new_member_suffix
        self.streams_rebalances_total = 0
        self.share_states: ShareStateClient | None = None  # set once there is a client of the share coordinator
        self.settings = settings_of(config, metadata.configs)
        self.topic = InternalTopic(OFFSETS_TOPIC, "offsets.topic.replication.factor", config, topics, metadata)
        self.removals = DeletedTopics(metadata.topics)
        self.metadata = metadata
        self.pacing = pacing
        self.timers = pacing.timers
        self.load: Callable[..., Awaitable[Loaded]] = load  # reads the log of a partition
        self._commit_timeout_ms: int = config["offsets.commit.timeout.ms"]
        self._expire_every_ms: int = config["offsets.retention.check.interval.ms"]
        self.forgetting: Iterator[None] | None = None  # forgets offsets of deleted topics: in memory, then in the logs
        steps = Steps(self._new_shard, self._load, self._open, self._close)
        self.led = LedShards(OFFSETS_TOPIC, steps, metadata, replicas, pacing)
        self.led.follow()

    def start(self) -> None:
        self.timers.after(self._expire_every_ms, self._expire)

    def close(self) -> None:
        """Answer all waiting members with NOT_COORDINATOR, without slices: this broker stops."""
        for shard in self.led.give_up_all():
            at_once(slices(shard.close()))

    # --- which partitions ---------------------------------------------------------------------------------------

    def open_shard(self, partition: Partition) -> Shard:
        """The shard of a partition that gets a marker. While its log is read the marker could come behind what is read,
        unheard of. Raises BrokerError.
        """
        shard = self.led.by_partition.get(partition.index)
        if shard is None or shard.is_loading:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} is being read")
        return shard

    def apply(self, records: Iterable[Message]) -> None:
        """Forget the offsets of topics that these committed records delete. Called before the replicas apply the
        records: a new leader then reads its log with the deletions known.
        """
        if self.removals.apply(records):
            is_running = self.forgetting is not None
            self.forgetting = chain(slices(self._forget()), self._tombstones())
            if not is_running:
                run_paced(self.timers, self._forget_deleted())

    def _forget_deleted(self) -> Iterator[None]:
        """Forget offsets of deleted topics, a slice a step; again from the first where more are deleted meanwhile."""
        while self.forgetting is not None and next(self.forgetting, self.forgetting) is None:
            yield
        self.forgetting = None

    def _forget(self) -> Iterator[int]:
        """Forget the offsets of deleted topics in memory, a group a step; yields how many it has looked at."""
        for shard in list(self.shards()):
            yield from shard.upkeep.forget_all()
            yield from shard.share_offsets.forget_deleted_topics()

    def _tombstones(self) -> Iterator[None]:
        """Append the pending tombstones, a slice a step, shard by shard in turns: a shard may wait for its replicas."""
        owing = deque((shard, shard.upkeep.tombstones()) for shard in self.shards())
        while owing:
            shard, work = owing.popleft()
            if not shard.is_closed and next(work, work) is None:
                owing.append((shard, work))
                yield

    def _new_shard(self, partition: Partition) -> Shard:
        shard = Shard(
            partition, self.removals, self.settings, self.pacing, self._commit_timeout_ms, lambda: self.share_states
        )
        shard.streams.on_rebalance = self._count_rebalance
        return shard

    def _count_rebalance(self) -> None:
        self.streams_rebalances_total += 1

    async def _load(self, shard: Shard, partition: Partition) -> dict[str, int]:
        loaded = await self.load(partition, shard.image, self.removals.number)
        for _ in slices(shard.upkeep.forget_former()):
            await asyncio.sleep(0)
        for _ in slices(shard.expect_members()):
            await asyncio.sleep(0)
        await self._forget_missed(shard)
        groups = len(shard.image.groups)
        return {"groups": groups, "records": loaded.records, "passed_over": loaded.passed_over}

    def _open(self, shard: Shard) -> None:
        shard.open()
        self.led.work_off(shard, self._owing(shard))

    def _owing(self, shard: Shard) -> Iterator[None]:
        """Do what the log owes to topics that were deleted while no coordinator had it."""
        yield from shard.upkeep.tombstones()
        yield from slices(shard.share_offsets.forget_deleted_topics())

    def _close(self, shard: Shard) -> None:
        run_paced(self.timers, slices(shard.close()))

    async def _forget_missed(self, shard: Shard) -> None:
        """Forget the offsets of topics that were deleted while the log was read, before members commit more."""
        while shard.upkeep.is_behind:
            for _ in slices(shard.upkeep.forget_all()):
                await asyncio.sleep(0)

    # --- what handlers ask --------------------------------------------------------------------------------------

    def partition_of(self, group_id: str) -> int | None:
        """The group's partition, or None before the offsets topic exists."""
        return self.led.partition_of(group_id)

    def shard(self, group_id: str) -> Shard:
        """The group's shard. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE."""
        return self.led.of(group_id)

    def shards(self) -> Iterator[Shard]:
        """The shards that have loaded, in the order of their partitions."""
        return iter(self.led.loaded)

    @property
    def is_loading(self) -> bool:
        return self.led.is_loading

    # --- periodic work ------------------------------------------------------------------------------------------

    def _expire(self) -> None:
        for turn, shard in enumerate(self.shards()):
            self.timers.after(turn * EXPIRE_STAGGER_MS, self._expire_shard, shard)
        self.timers.after(self._expire_every_ms, self._expire)

    def _expire_shard(self, shard: Shard) -> None:
        self.led.work_off(shard, shard.upkeep.tombstones())
        self.led.work_off(shard, self._expiring(shard))

    def _expiring(self, shard: Shard) -> Iterator[None]:
        count = yield from shard.upkeep.expire()
        if count:
            log.info("groups.expired", partition=shard.partition.index, records=count)


def slices(steps: Iterator[int]) -> Work[None]:
    """Take steps that yield how many offsets they have looked at; yields after each slice."""
    looked_at = 0
    for step in steps:
        looked_at += step
        if looked_at >= OFFSETS_PER_SLICE_MAX:
            looked_at = 0
            yield
