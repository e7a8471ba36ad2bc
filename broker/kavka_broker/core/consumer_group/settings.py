"""The limits and times of consumer groups of the new protocol, by Kafka's names."""

from dataclasses import dataclass

REGEX_REFUSED = "regular expressions are not supported yet; subscribe to topics by their names"
SUBSCRIBED_TOPICS_MAX = 10_000
"""That one member names. What its heartbeat computes grows with them."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """Settings of one group; the comment behind each field is the config of brokers, `consumer.` that of a group."""

    session_timeout_ms: int = 45_000  # group.consumer.session.timeout.ms
    heartbeat_interval_ms: int = 5_000  # group.consumer.heartbeat.interval.ms
    assignment_interval_ms: int = 1_000  # group.consumer.assignment.interval.ms
    members_max: int = 2**31 - 1  # group.consumer.max.size
    assignors: tuple[str, ...] = ("uniform", "range")  # group.consumer.assignors
