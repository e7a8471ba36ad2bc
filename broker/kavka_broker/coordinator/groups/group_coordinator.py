"""The groups that this broker coordinates: those whose partition of `__consumer_offsets` it leads.

Partitions come and go (`led_shards`); one that comes is read (`group_loading`) and then served (`Shard`). Handlers ask
`shard(group_id)` and talk to it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain

from kavka_broker.coordinator.groups.deleted_topics import DeletedTopics
from kavka_broker.coordinator.groups.group_loading import load
from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.coordinator.groups.offset_expiration import OFFSETS_PER_SLICE_MAX
from kavka_broker.coordinator.internal_topic import InternalTopic, Topics
from kavka_broker.coordinator.led_shards import BETWEEN_SLICES_MS, LedShards, Steps
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.share.share_state_client import ShareStateClient
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings, MigrationPolicy
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.metadata.image.configs import Configs
from kavka_broker.core.metadata.image.effective_config import EffectiveConfig
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import OFFSETS_TOPIC
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.core.streams_group.settings import StreamsGroupSettings
from kavka_broker.logs import get
from kavka_broker.loop.slices import Work, at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.partition import Partition

log = get("coordinator")

EXPIRE_STAGGER_MS = 10
"""The pause between two partitions, so that expiry never holds the loop for all of them at once."""

MS_MAX = 2**31 - 1
"""Of a config that has no upper bound: what an int of Kafka's can be."""


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
        self._metadata = metadata
        self._pacing = pacing
        self._timers = pacing.timers
        self._commit_timeout_ms: int = config["offsets.commit.timeout.ms"]
        self._expire_every_ms: int = config["offsets.retention.check.interval.ms"]
        self._forgetting: Iterator[None] | None = None  # forgets offsets of deleted topics: in memory, then in the logs
        steps = Steps(self._new_shard, self._load, self._open, self._close)
        self.led = LedShards(OFFSETS_TOPIC, steps, metadata, replicas, pacing)
        self.led.follow()

    def start(self) -> None:
        self._timers.after(self._expire_every_ms, self._expire)

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
            is_running = self._forgetting is not None
            self._forgetting = chain(slices(self._forget()), self._tombstones())
            if not is_running:
                self._go_on_forgetting()

    def _go_on_forgetting(self) -> None:
        """Forget a slice of offsets, and the next slice in a later turn."""
        if self._forgetting is None:
            return
        if next(self._forgetting, self._forgetting) is None:
            self._timers.after(BETWEEN_SLICES_MS, self._go_on_forgetting)
        else:
            self._forgetting = None

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
            partition, self.removals, self.settings, self._pacing, self._commit_timeout_ms, lambda: self.share_states
        )
        shard.streams.on_rebalance = self._count_rebalance
        return shard

    def _count_rebalance(self) -> None:
        self.streams_rebalances_total += 1

    async def _load(self, shard: Shard, partition: Partition) -> dict[str, int]:
        loaded = await load(partition, shard.image, self.removals.number)
        for _ in slices(shard.upkeep.forget_former()):
            await asyncio.sleep(0)
        for _ in slices(shard.expect_members()):
            await asyncio.sleep(0)
        await self._forget_missed(shard)
        groups = len(shard.image.groups)
        return {"groups": groups, "records": loaded.records, "passed_over": loaded.passed_over}

    def _open(self, shard: Shard) -> None:
        shard.open()
        owing = chain(shard.upkeep.tombstones(), slices(shard.share_offsets.forget_deleted_topics()))
        self.led.work_off(shard, owing)

    def _close(self, shard: Shard) -> None:
        self._go_on(slices(shard.close()))

    def _go_on(self, work: Work[None]) -> None:
        """Do a slice of work, and the next slice in a later turn."""
        if next(work, work) is None:
            self._timers.after(BETWEEN_SLICES_MS, self._go_on, work)

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
            self._timers.after(turn * EXPIRE_STAGGER_MS, self._expire_shard, shard)
        self._timers.after(self._expire_every_ms, self._expire)

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


def settings_of(config: BrokerConfig, configs: Configs) -> GroupSettings:
    effective = EffectiveConfig(config, configs)

    def consumer(group_id: str) -> ConsumerGroupSettings:
        return consumer_settings_of(effective.broker, configs.group(group_id))

    def share(group_id: str) -> ShareGroupSettings:
        return share_settings_of(effective.broker, configs.group(group_id))

    def streams(group_id: str) -> StreamsGroupSettings:
        return streams_settings_of(effective.broker, configs.group(group_id))

    return GroupSettings(
        session_timeout_min_ms=config["group.min.session.timeout.ms"],
        session_timeout_max_ms=config["group.max.session.timeout.ms"],
        initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
        members_max=config["group.max.size"],
        offset_metadata_max_bytes=config["offset.metadata.max.bytes"],
        offsets_retention_ms=config["offsets.retention.minutes"] * 60_000,
        consumer=consumer,
        share=share,
        streams=streams,
    )


def consumer_settings_of(config: BrokerConfig, of_group: Mapping[str, str]) -> ConsumerGroupSettings:
    """The settings of one group: its own configs, within the bounds that brokers set, otherwise those of brokers."""
    own = partial(bounded, of_group)
    return ConsumerGroupSettings(
        session_timeout_ms=own(
            "consumer.session.timeout.ms",
            config["group.consumer.session.timeout.ms"],
            config["group.consumer.min.session.timeout.ms"],
            config["group.consumer.max.session.timeout.ms"],
        ),
        heartbeat_interval_ms=own(
            "consumer.heartbeat.interval.ms",
            config["group.consumer.heartbeat.interval.ms"],
            config["group.consumer.min.heartbeat.interval.ms"],
            config["group.consumer.max.heartbeat.interval.ms"],
        ),
        assignment_interval_ms=own(
            "consumer.assignment.interval.ms",
            config["group.consumer.assignment.interval.ms"],
            config["group.consumer.min.assignment.interval.ms"],
            config["group.consumer.max.assignment.interval.ms"],
        ),
        rebalance_interval_ms=config["kavka.group.rebalance.heartbeat.interval.ms"],
        regex_refresh_interval_ms=config["group.consumer.regex.refresh.interval.ms"],
        members_max=config["group.consumer.max.size"],
        assignors=config["group.consumer.assignors"],
        migration=MigrationPolicy(config["group.consumer.migration.policy"].lower()),
        classic_members_max=config["group.max.size"],
    )


def share_settings_of(config: BrokerConfig, of_group: Mapping[str, str]) -> ShareGroupSettings:
    """The settings of one share group, as those of `consumer_settings_of`."""
    own = partial(bounded, of_group)
    return ShareGroupSettings(
        session_timeout_ms=own(
            "share.session.timeout.ms",
            config["group.share.session.timeout.ms"],
            config["group.share.min.session.timeout.ms"],
            config["group.share.max.session.timeout.ms"],
        ),
        heartbeat_interval_ms=own(
            "share.heartbeat.interval.ms",
            config["group.share.heartbeat.interval.ms"],
            config["group.share.min.heartbeat.interval.ms"],
            config["group.share.max.heartbeat.interval.ms"],
        ),
        assignment_interval_ms=own(
            "share.assignment.interval.ms",
            config["group.share.assignment.interval.ms"],
            config["group.share.min.assignment.interval.ms"],
            config["group.share.max.assignment.interval.ms"],
        ),
        rebalance_interval_ms=config["kavka.group.rebalance.heartbeat.interval.ms"],
        # As in Apache Kafka no shorter than a write may take, so that nothing is asked for twice at once.
        initialize_retry_interval_ms=max(
            config["group.share.initialize.retry.interval.ms"], config["offsets.commit.timeout.ms"]
        ),
        members_max=config["group.share.max.size"],
        assignor=config["group.share.assignors"][0],
        record_lock_duration_ms=own(
            "share.record.lock.duration.ms",
            config["group.share.record.lock.duration.ms"],
            config["group.share.min.record.lock.duration.ms"],
            config["group.share.max.record.lock.duration.ms"],
        ),
        delivery_count_limit=own(
            "share.delivery.count.limit",
            config["group.share.delivery.count.limit"],
            config["group.share.min.delivery.count.limit"],
            config["group.share.max.delivery.count.limit"],
        ),
        partition_max_record_locks=own(
            "share.partition.max.record.locks",
            config["group.share.partition.max.record.locks"],
            config["group.share.min.partition.max.record.locks"],
            config["group.share.max.partition.max.record.locks"],
        ),
        auto_offset_reset=of_group.get("share.auto.offset.reset", "latest"),
        isolation_level=of_group.get("share.isolation.level", "read_uncommitted"),
        renew_acknowledge_enable=of_group.get("share.renew.acknowledge.enable", "true").lower() == "true",
    )


def streams_settings_of(config: BrokerConfig, of_group: Mapping[str, str]) -> StreamsGroupSettings:
    """The settings of one streams group, as those of `consumer_settings_of`."""
    own = partial(bounded, of_group)
    return StreamsGroupSettings(
        session_timeout_ms=own(
            "streams.session.timeout.ms",
            config["group.streams.session.timeout.ms"],
            config["group.streams.min.session.timeout.ms"],
            config["group.streams.max.session.timeout.ms"],
        ),
        heartbeat_interval_ms=own(
            "streams.heartbeat.interval.ms",
            config["group.streams.heartbeat.interval.ms"],
            config["group.streams.min.heartbeat.interval.ms"],
            config["group.streams.max.heartbeat.interval.ms"],
        ),
        assignment_interval_ms=own(
            "streams.assignment.interval.ms",
            config["group.streams.assignment.interval.ms"],
            config["group.streams.min.assignment.interval.ms"],
            config["group.streams.max.assignment.interval.ms"],
        ),
        rebalance_interval_ms=config["kavka.group.rebalance.heartbeat.interval.ms"],
        initial_rebalance_delay_ms=own(
            "streams.initial.rebalance.delay.ms", config["group.streams.initial.rebalance.delay.ms"], 0, MS_MAX
        ),
        standby_replicas=own(
            "streams.num.standby.replicas",
            config["group.streams.num.standby.replicas"],
            0,
            config["group.streams.max.standby.replicas"],
        ),
        members_max=config["group.streams.max.size"],
    )


def bounded(of_group: Mapping[str, str], name: str, of_brokers: int, low: int, high: int) -> int:
    """A group's own config within the bounds of brokers; that of brokers where it has none."""
    given = of_group.get(name)
    return of_brokers if given is None else min(max(int(given), low), high)
