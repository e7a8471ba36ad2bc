"""The limits and times of share groups, by Kafka's names."""

from dataclasses import dataclass

MEMBER_ID_LENGTH_MAX = 36
"""A member id is a UUID as text."""


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    """Settings of one group; the comment behind each field is the config of brokers, or the one that groups alone have.

    A group's own configs are those of brokers with `share.` instead of `group.share.`.
    """

    session_timeout_ms: int = 45_000  # group.share.session.timeout.ms
    heartbeat_interval_ms: int = 5_000  # group.share.heartbeat.interval.ms
    rebalance_interval_ms: int = 500  # kavka.group.rebalance.heartbeat.interval.ms
    assignment_interval_ms: int = 1_000  # group.share.assignment.interval.ms
    initialize_retry_interval_ms: int = 30_000  # group.share.initialize.retry.interval.ms
    members_max: int = 200  # group.share.max.size
    assignor: str = "simple"  # group.share.assignors
    # Those of the leaders of share partitions:
    record_lock_duration_ms: int = 30_000  # group.share.record.lock.duration.ms
    delivery_count_limit: int = 5  # group.share.delivery.count.limit
    partition_max_record_locks: int = 2_000  # group.share.partition.max.record.locks
    auto_offset_reset: str = "latest"  # share.auto.offset.reset
    isolation_level: str = "read_uncommitted"  # share.isolation.level
    renew_acknowledge_enable: bool = True  # share.renew.acknowledge.enable
