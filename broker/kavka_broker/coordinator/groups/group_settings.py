"""Settings of groups: a group's own configs within the bounds that brokers set, otherwise those of brokers."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings, MigrationPolicy
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.metadata.image.configs import Configs
from kavka_broker.core.metadata.image.effective_config import EffectiveConfig
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.core.streams_group.settings import StreamsGroupSettings

MS_MAX: Final = 2**31 - 1
"""Of a config that has no upper bound: what an int of Kafka's can be."""


def settings_of(config: BrokerConfig, configs: Configs) -> GroupSettings:
    """Return the settings of all groups; those of one group are looked up as they are now."""
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
    """Return the settings of one consumer group."""
    own = partial(within_bounds, config, of_group)
    return ConsumerGroupSettings(
        session_timeout_ms=own("consumer.session.timeout.ms"),
        heartbeat_interval_ms=own("consumer.heartbeat.interval.ms"),
        assignment_interval_ms=own("consumer.assignment.interval.ms"),
        rebalance_interval_ms=config["kavka.group.rebalance.heartbeat.interval.ms"],
        regex_refresh_interval_ms=config["group.consumer.regex.refresh.interval.ms"],
        members_max=config["group.consumer.max.size"],
        assignors=config["group.consumer.assignors"],
        migration=MigrationPolicy(config["group.consumer.migration.policy"].lower()),
        classic_members_max=config["group.max.size"],
    )


def share_settings_of(config: BrokerConfig, of_group: Mapping[str, str]) -> ShareGroupSettings:
    """Return the settings of one share group."""
    own = partial(within_bounds, config, of_group)
    return ShareGroupSettings(
        session_timeout_ms=own("share.session.timeout.ms"),
        heartbeat_interval_ms=own("share.heartbeat.interval.ms"),
        assignment_interval_ms=own("share.assignment.interval.ms"),
        rebalance_interval_ms=config["kavka.group.rebalance.heartbeat.interval.ms"],
        # As in Apache Kafka no shorter than a write may take, so that nothing is asked for twice at once.
        initialize_retry_interval_ms=max(
            config["group.share.initialize.retry.interval.ms"], config["offsets.commit.timeout.ms"]
        ),
        members_max=config["group.share.max.size"],
        assignor=config["group.share.assignors"][0],
        record_lock_duration_ms=own("share.record.lock.duration.ms"),
        delivery_count_limit=own("share.delivery.count.limit"),
        partition_max_record_locks=own("share.partition.max.record.locks"),
        auto_offset_reset=of_group.get("share.auto.offset.reset", "latest"),
        isolation_level=of_group.get("share.isolation.level", "read_uncommitted"),
        renew_acknowledge_enable=of_group.get("share.renew.acknowledge.enable", "true").lower() == "true",
    )


def streams_settings_of(config: BrokerConfig, of_group: Mapping[str, str]) -> StreamsGroupSettings:
    """Return the settings of one streams group."""
    own = partial(within_bounds, config, of_group)
    return StreamsGroupSettings(
        session_timeout_ms=own("streams.session.timeout.ms"),
        heartbeat_interval_ms=own("streams.heartbeat.interval.ms"),
        assignment_interval_ms=own("streams.assignment.interval.ms"),
        rebalance_interval_ms=config["kavka.group.rebalance.heartbeat.interval.ms"],
        initial_rebalance_delay_ms=bounded(config, of_group, "streams.initial.rebalance.delay.ms", 0, MS_MAX),
        standby_replicas=bounded(
            config, of_group, "streams.num.standby.replicas", 0, config["group.streams.max.standby.replicas"]
        ),
        members_max=config["group.streams.max.size"],
    )


def within_bounds(config: BrokerConfig, of_group: Mapping[str, str], name: str) -> int:
    """Return a group's own config, such as `share.session.timeout.ms`, within the bounds that brokers have for it; the
    value of brokers where the group has none.
    """
    kind, _, rest = name.partition(".")
    low, high = config.whole(f"group.{kind}.min.{rest}"), config.whole(f"group.{kind}.max.{rest}")
    return bounded(config, of_group, name, low, high)


def bounded(config: BrokerConfig, of_group: Mapping[str, str], name: str, low: int, high: int) -> int:
    """Return a group's own config within these bounds; the value of brokers where the group has none."""
    given = of_group.get(name)
    return config.whole(f"group.{name}") if given is None else min(max(int(given), low), high)
