"""The broker configs of Apache Kafka 4.3 for groups, offsets, share groups, transactions and remote storage."""

from typing import Final

from kavka_broker.core.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Mode,
    OneOf,
    Range,
    by_name,
)
from kavka_broker.core.config.topic_bounds import PARTITIONS_PER_REQUEST_MAX, SEGMENT_BYTES_MIN

BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
SHORT: Final = ConfigType.SHORT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST
HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW
CLUSTER_WIDE: Final = Mode.CLUSTER_WIDE
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

COORDINATOR_KEYS: Final = by_name(
    (
        Definition("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, HIGH, Range(0), served=True),
        Definition("add.partitions.to.txn.retry.backoff.ms", INT, 20, HIGH, Range(1), served=True),
        Definition("group.consumer.assignment.interval.ms", INT, 1000, MEDIUM, Range(0), CLUSTER_WIDE, served=True),
        Definition(
            "group.consumer.assignors", LIST, ("uniform", "range"), MEDIUM, OneOf(("uniform", "range")), served=True
        ),
        Definition("group.consumer.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1), served=True),
        Definition("group.consumer.max.assignment.interval.ms", INT, 15_000, MEDIUM, Range(0), served=True),
        Definition("group.consumer.max.heartbeat.interval.ms", INT, 15_000, MEDIUM, Range(1), served=True),
        Definition("group.consumer.max.session.timeout.ms", INT, 60_000, MEDIUM, Range(1), served=True),
        Definition("group.consumer.max.size", INT, INT_MAX, MEDIUM, Range(1), served=True),
        Definition(
            "group.consumer.migration.policy",
            STRING,
            "bidirectional",
            MEDIUM,
            OneOf(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), fold_case=True),
            served=True,
        ),
        Definition("group.consumer.min.assignment.interval.ms", INT, 0, MEDIUM, Range(0), served=True),
        Definition("group.consumer.min.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1), served=True),
        Definition("group.consumer.min.session.timeout.ms", INT, 45_000, MEDIUM, Range(1), served=True),
        Definition(
            "group.consumer.regex.refresh.interval.ms",
            INT,
            600_000,
            MEDIUM,
            Range(10_000),
            internal=True,
            served=True,
        ),
        Definition("group.consumer.session.timeout.ms", INT, 45_000, MEDIUM, Range(1), served=True),
        Definition("group.coordinator.append.linger.ms", INT, -1, MEDIUM, Range(-1)),
        Definition("group.coordinator.background.threads", INT, 2, HIGH, Range(1)),
        Definition(
            "group.coordinator.cached.buffer.max.bytes",
            INT,
            1_048_588,
            MEDIUM,
            Range(524_288),
            CLUSTER_WIDE,
        ),
        Definition(
            "group.coordinator.rebalance.protocols",
            LIST,
            ("classic", "consumer", "streams"),
            MEDIUM,
            OneOf(("consumer", "classic", "share", "streams")),
            served=True,
        ),
        Definition("group.coordinator.threads", INT, 4, HIGH, Range(1)),
        Definition("group.initial.rebalance.delay.ms", INT, 3000, MEDIUM, served=True),
        Definition("group.max.session.timeout.ms", INT, 1_800_000, MEDIUM, served=True),
        Definition("group.max.size", INT, INT_MAX, MEDIUM, Range(1), served=True),
        Definition("group.min.session.timeout.ms", INT, 6000, MEDIUM, served=True),
        Definition("group.share.assignment.interval.ms", INT, 1000, MEDIUM, Range(0), CLUSTER_WIDE, served=True),
        Definition("group.share.assignors", LIST, ("simple",), MEDIUM, OneOf(("simple",)), served=True),
        Definition("group.share.delivery.count.limit", INT, 5, MEDIUM, Range(2, 10), served=True),
        Definition("group.share.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1), served=True),
        Definition("group.share.initialize.retry.interval.ms", INT, 30_000, LOW, Range(1), internal=True, served=True),
        Definition("group.share.max.assignment.interval.ms", INT, 15_000, MEDIUM, Range(0), served=True),
        Definition("group.share.max.delivery.count.limit", INT, 10, MEDIUM, Range(5, 25), served=True),
        Definition("group.share.max.heartbeat.interval.ms", INT, 15_000, MEDIUM, Range(1), served=True),
        Definition("group.share.max.partition.max.record.locks", INT, 4000, MEDIUM, Range(2000, 10_000), served=True),
        Definition(
            "group.share.max.record.lock.duration.ms", INT, 60_000, MEDIUM, Range(30_000, 3_600_000), served=True
        ),
        Definition("group.share.max.session.timeout.ms", INT, 60_000, MEDIUM, Range(1), served=True),
        Definition("group.share.max.share.sessions", INT, 2000, MEDIUM, Range(1), served=True),
        Definition("group.share.max.size", INT, 200, MEDIUM, Range(1, 1000), served=True),
        Definition("group.share.min.assignment.interval.ms", INT, 0, MEDIUM, Range(0), served=True),
        Definition("group.share.min.delivery.count.limit", INT, 2, MEDIUM, Range(2, 5), served=True),
        Definition("group.share.min.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1), served=True),
        Definition("group.share.min.partition.max.record.locks", INT, 100, MEDIUM, Range(100, 2000), served=True),
        Definition("group.share.min.record.lock.duration.ms", INT, 15_000, MEDIUM, Range(1000, 30_000), served=True),
        Definition("group.share.min.session.timeout.ms", INT, 45_000, MEDIUM, Range(1), served=True),
        Definition("group.share.partition.max.record.locks", INT, 2000, MEDIUM, Range(100, 10_000), served=True),
        Definition(
            "group.share.persister.class.name",
            STRING,
            "org.apache.kafka.server.share.persister.DefaultStatePersister",
            MEDIUM,
            internal=True,
        ),
        Definition("group.share.record.lock.duration.ms", INT, 30_000, MEDIUM, Range(1000, 3_600_000), served=True),
        Definition("group.share.session.timeout.ms", INT, 45_000, MEDIUM, Range(1), served=True),
        Definition("group.streams.assignment.interval.ms", INT, 1000, MEDIUM, Range(0), CLUSTER_WIDE, served=True),
        Definition("group.streams.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1), served=True),
        Definition("group.streams.initial.rebalance.delay.ms", INT, 3000, MEDIUM, Range(0), served=True),
        Definition("group.streams.max.assignment.interval.ms", INT, 15_000, MEDIUM, Range(0), served=True),
        Definition("group.streams.max.heartbeat.interval.ms", INT, 15_000, MEDIUM, Range(1), served=True),
        Definition("group.streams.max.session.timeout.ms", INT, 60_000, MEDIUM, Range(1), served=True),
        Definition("group.streams.max.size", INT, INT_MAX, MEDIUM, Range(1), served=True),
        Definition("group.streams.max.standby.replicas", INT, 2, MEDIUM, Range(0), served=True),
        Definition("group.streams.min.assignment.interval.ms", INT, 0, MEDIUM, Range(0), served=True),
        Definition("group.streams.min.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1), served=True),
        Definition("group.streams.min.session.timeout.ms", INT, 45_000, MEDIUM, Range(1), served=True),
        Definition("group.streams.num.standby.replicas", INT, 0, MEDIUM, Range(0), served=True),
        Definition("group.streams.session.timeout.ms", INT, 45_000, MEDIUM, Range(1), served=True),
        Definition("offset.metadata.max.bytes", INT, 4096, HIGH, served=True),
        Definition("offsets.commit.timeout.ms", INT, 5000, HIGH, Range(1), served=True),
        Definition("offsets.load.buffer.size", INT, 5_242_880, HIGH, Range(1)),
        Definition("offsets.retention.check.interval.ms", LONG, 600_000, HIGH, Range(1), served=True),
        Definition("offsets.retention.minutes", INT, 10_080, HIGH, Range(1), served=True),
        Definition("offsets.topic.compression.codec", INT, 0, HIGH),
        Definition("offsets.topic.num.partitions", INT, 50, HIGH, Range(1, PARTITIONS_PER_REQUEST_MAX), served=True),
        Definition("offsets.topic.replication.factor", SHORT, 3, HIGH, Range(1), served=True),
        Definition("offsets.topic.segment.bytes", INT, 104_857_600, HIGH, Range(SEGMENT_BYTES_MIN), served=True),
        Definition("producer.id.expiration.check.interval.ms", INT, 600_000, LOW, Range(1), internal=True, served=True),
        Definition("producer.id.expiration.ms", INT, 86_400_000, LOW, Range(1), CLUSTER_WIDE, served=True),
        Definition("remote.fetch.max.wait.ms", INT, 500, MEDIUM, Range(1), CLUSTER_WIDE),
        Definition("remote.list.offsets.request.timeout.ms", LONG, 30_000, MEDIUM, Range(1), CLUSTER_WIDE),
        Definition(
            "remote.log.index.file.cache.total.size.bytes",
            LONG,
            1_073_741_824,
            LOW,
            Range(1),
            CLUSTER_WIDE,
        ),
        Definition("remote.log.index.file.cache.ttl.ms", LONG, 900_000, LOW, Range(-1), internal=True),
        Definition("remote.log.manager.copier.thread.pool.size", INT, 10, MEDIUM, Range(1), CLUSTER_WIDE),
        Definition(
            "remote.log.manager.copy.max.bytes.per.second",
            LONG,
            LONG_MAX,
            MEDIUM,
            Range(1),
            CLUSTER_WIDE,
        ),
        Definition("remote.log.manager.copy.quota.window.num", INT, 11, MEDIUM, Range(1)),
        Definition("remote.log.manager.copy.quota.window.size.seconds", INT, 1, MEDIUM, Range(1)),
        Definition("remote.log.manager.expiration.thread.pool.size", INT, 10, MEDIUM, Range(1), CLUSTER_WIDE),
        Definition(
            "remote.log.manager.fetch.max.bytes.per.second",
            LONG,
            LONG_MAX,
            MEDIUM,
            Range(1),
            CLUSTER_WIDE,
        ),
        Definition("remote.log.manager.fetch.quota.window.num", INT, 11, MEDIUM, Range(1)),
        Definition("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, MEDIUM, Range(1)),
        Definition("remote.log.manager.follower.thread.pool.size", INT, 2, MEDIUM, Range(1), CLUSTER_WIDE),
        Definition("remote.log.manager.task.interval.ms", LONG, 30_000, LOW, Range(1)),
        Definition("remote.log.manager.task.retry.backoff.max.ms", LONG, 30_000, LOW, Range(1), internal=True),
        Definition("remote.log.manager.task.retry.backoff.ms", LONG, 500, LOW, Range(1), internal=True),
        Definition("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, LOW, Range(0, 0.5), internal=True),
        Definition("remote.log.manager.thread.pool.size", INT, 2, MEDIUM, Range(1)),
        Definition("remote.log.metadata.custom.metadata.max.bytes", INT, 128, LOW, Range(0)),
        Definition(
            "remote.log.metadata.manager.class.name",
            STRING,
            "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
            MEDIUM,
        ),
        Definition("remote.log.metadata.manager.class.path", STRING, None, MEDIUM),
        Definition("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", MEDIUM),
        Definition("remote.log.metadata.manager.listener.name", STRING, None, MEDIUM),
        Definition("remote.log.reader.max.pending.tasks", INT, 100, MEDIUM, Range(1)),
        Definition("remote.log.reader.threads", INT, 10, MEDIUM, Range(1), CLUSTER_WIDE),
        Definition("remote.log.storage.manager.class.name", STRING, None, MEDIUM),
        Definition("remote.log.storage.manager.class.path", STRING, None, MEDIUM),
        Definition("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", MEDIUM),
        Definition("remote.log.storage.system.enable", BOOLEAN, False, MEDIUM),
        Definition("share.coordinator.append.linger.ms", INT, -1, MEDIUM, Range(-1)),
        Definition(
            "share.coordinator.cached.buffer.max.bytes",
            INT,
            1_048_588,
            MEDIUM,
            Range(524_288),
            CLUSTER_WIDE,
        ),
        Definition(
            "share.coordinator.cold.partition.snapshot.interval.ms",
            INT,
            300_000,
            LOW,
            Range(1),
            internal=True,
            served=True,
        ),
        Definition("share.coordinator.load.buffer.size", INT, 5_242_880, HIGH, Range(1)),
        Definition(
            "share.coordinator.snapshot.update.records.per.snapshot", INT, 500, MEDIUM, Range(0, 500), served=True
        ),
        Definition("share.coordinator.state.topic.compression.codec", INT, 0, HIGH),
        Definition("share.coordinator.state.topic.min.isr", SHORT, 2, HIGH, Range(1), served=True),
        Definition("share.coordinator.state.topic.num.partitions", INT, 50, HIGH, Range(1), served=True),
        Definition(
            "share.coordinator.state.topic.prune.interval.ms", INT, 300_000, LOW, Range(1), internal=True, served=True
        ),
        Definition("share.coordinator.state.topic.replication.factor", SHORT, 3, HIGH, Range(1), served=True),
        Definition("share.coordinator.state.topic.segment.bytes", INT, 104_857_600, HIGH, Range(1), served=True),
        Definition("share.coordinator.threads", INT, 1, MEDIUM, Range(1)),
        Definition("share.coordinator.write.timeout.ms", INT, 5000, HIGH, Range(1), served=True),
        Definition("share.fetch.purgatory.purge.interval.requests", INT, 1000, MEDIUM),
        Definition(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, LOW, Range(1), served=True
        ),
        Definition("transaction.max.timeout.ms", INT, 900_000, HIGH, Range(1), served=True),
        Definition("transaction.partition.verification.enable", BOOLEAN, True, LOW, mode=CLUSTER_WIDE, served=True),
        Definition(
            "transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, LOW, Range(1), served=True
        ),
        Definition("transaction.state.log.load.buffer.size", INT, 5_242_880, HIGH, Range(1)),
        Definition("transaction.state.log.min.isr", INT, 2, HIGH, Range(1), served=True),
        Definition(
            "transaction.state.log.num.partitions", INT, 50, HIGH, Range(1, PARTITIONS_PER_REQUEST_MAX), served=True
        ),
        Definition("transaction.state.log.replication.factor", SHORT, 3, HIGH, Range(1), served=True),
        Definition(
            "transaction.state.log.segment.bytes", INT, 104_857_600, HIGH, Range(SEGMENT_BYTES_MIN), served=True
        ),
        Definition("transaction.two.phase.commit.enable", BOOLEAN, False, LOW, served=True),
        Definition("transactional.id.expiration.ms", INT, 604_800_000, HIGH, Range(1), served=True),
        Definition("unstable.api.versions.enable", BOOLEAN, False, HIGH, internal=True, served=True),
        Definition("unstable.feature.versions.enable", BOOLEAN, False, HIGH, internal=True),
    )
)
