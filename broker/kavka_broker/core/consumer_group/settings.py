"""The limits and times of consumer groups of the new protocol, by Kafka's names."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

SUBSCRIBED_TOPICS_MAX = 10_000
"""That one member names. What its heartbeat computes grows with them."""
MEMBERS_BYTES_MAX = 64 * 1024 * 1024
"""Of all members of one partition of `__consumer_offsets`: Kafka has no bound on members, and each may say 1 MiB."""


def has_room_for(growth_bytes: int, room_bytes: int) -> bool:
    """Whether members may take so much more. What grows by nothing is never in the way, however full it is."""
    return growth_bytes <= 0 or growth_bytes <= room_bytes


class HeartbeatIntervals(Protocol):
    """How often the members of a group heartbeat: as a rule, and while they wait for their assignment."""

    @property
    def heartbeat_interval_ms(self) -> int: ...
    @property
    def rebalance_interval_ms(self) -> int: ...


class MigrationPolicy(Enum):
    """The ways in which a group with members may change its protocol; the value is that of the config."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def may_upgrade(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def may_downgrade(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """Settings of one group; the comment behind each field is the config of brokers, `consumer.` that of a group."""

    session_timeout_ms: int = 45_000  # group.consumer.session.timeout.ms
    heartbeat_interval_ms: int = 5_000  # group.consumer.heartbeat.interval.ms
    rebalance_interval_ms: int = 500  # kavka.group.rebalance.heartbeat.interval.ms
    assignment_interval_ms: int = 1_000  # group.consumer.assignment.interval.ms
    regex_refresh_interval_ms: int = 600_000  # group.consumer.regex.refresh.interval.ms
    members_max: int = 2**31 - 1  # group.consumer.max.size
    assignors: tuple[str, ...] = ("uniform", "range")  # group.consumer.assignors
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL  # group.consumer.migration.policy
    classic_members_max: int = 2**31 - 1  # group.max.size
