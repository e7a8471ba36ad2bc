"""The group configs of Apache Kafka 4.3, and the keys of client quotas and client metrics subscriptions."""

from typing import Final

from kavka_broker.core.config.definition import (
    ConfigType,
    Definition,
    OneOf,
    Range,
    by_name,
    earliest_or_latest,
)

BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT

GROUP_KEYS: Final = by_name(
    (
        Definition("consumer.assignment.interval.ms", INT, 1000, check=Range(0)),
        Definition("consumer.heartbeat.interval.ms", INT, 5000, check=Range(1)),
        Definition("consumer.session.timeout.ms", INT, 45_000, check=Range(1)),
        Definition("share.assignment.interval.ms", INT, 1000, check=Range(0)),
        Definition("share.auto.offset.reset", STRING, "latest", check=earliest_or_latest),
        Definition("share.delivery.count.limit", INT, 5, check=Range(2)),
        Definition("share.heartbeat.interval.ms", INT, 5000, check=Range(1)),
        Definition(
            "share.isolation.level",
            STRING,
            "read_uncommitted",
            check=OneOf(("read_committed", "read_uncommitted")),
        ),
        Definition("share.partition.max.record.locks", INT, 2000, check=Range(100)),
        Definition("share.record.lock.duration.ms", INT, 30_000, check=Range(1000)),
        Definition("share.renew.acknowledge.enable", BOOLEAN, True),
        Definition("share.session.timeout.ms", INT, 45_000, check=Range(1)),
        Definition("streams.assignment.interval.ms", INT, 1000, check=Range(0)),
        Definition("streams.heartbeat.interval.ms", INT, 5000, check=Range(1)),
        Definition("streams.initial.rebalance.delay.ms", INT, 3000, check=Range(0)),
        Definition("streams.num.standby.replicas", INT, 0, check=Range(0)),
        Definition("streams.session.timeout.ms", INT, 45_000, check=Range(1)),
    )
)
