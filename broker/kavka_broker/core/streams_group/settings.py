"""The limits and times of streams groups, by Kafka's names."""

from dataclasses import dataclass

TAGS_MAX = 100
"""Client tags of a member; Kafka Streams sends at most 5 (`rack.aware.assignment.tags`)."""


@dataclass(frozen=True, slots=True)
class StreamsGroupSettings:
    """Settings of one group; the comment behind each field is the config of brokers.

    A group's own configs are those of brokers with `streams.` instead of `group.streams.`.
    """

    session_timeout_ms: int = 45_000  # group.streams.session.timeout.ms
    heartbeat_interval_ms: int = 5_000  # group.streams.heartbeat.interval.ms
    rebalance_interval_ms: int = 500  # kavka.group.rebalance.heartbeat.interval.ms
    assignment_interval_ms: int = 1_000  # group.streams.assignment.interval.ms
    initial_rebalance_delay_ms: int = 3_000  # group.streams.initial.rebalance.delay.ms
    standby_replicas: int = 0  # group.streams.num.standby.replicas
    members_max: int = 2**31 - 1  # group.streams.max.size

    @property
    def assignment_configs(self) -> tuple[tuple[str, str], ...]:
        """What an assignment depends on: the group rebalances where it changes."""
        return (("num.standby.replicas", str(self.standby_replicas)),)
