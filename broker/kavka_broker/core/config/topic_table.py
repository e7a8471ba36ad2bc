"""The topic configs of Apache Kafka 4.3, each with the broker config that stands in where the topic says nothing."""

from typing import Final

from kavka_broker.core.config.definition import (
    ConfigType,
    Definition,
    OneOf,
    Range,
    by_name,
    throttled_replicas,
)

BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST
LONG_MAX: Final = 2**63 - 1

TOPIC_KEYS: Final = by_name(
    (
        Definition(
            "cleanup.policy",
            LIST,
            ("delete",),
            check=OneOf(("compact", "delete")),
            synonym="log.cleanup.policy",
        ),
        Definition(
            "compression.gzip.level",
            INT,
            -1,
            check=Range(1, 9, also=(-1,)),
            synonym="compression.gzip.level",
        ),
        Definition("compression.lz4.level", INT, 9, check=Range(1, 17), synonym="compression.lz4.level"),
        Definition(
            "compression.type",
            STRING,
            "producer",
            check=OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
            synonym="compression.type",
        ),
        Definition("compression.zstd.level", INT, 3, check=Range(-131_072, 22), synonym="compression.zstd.level"),
        Definition(
            "delete.retention.ms",
            LONG,
            86_400_000,
            check=Range(0),
            synonym="log.cleaner.delete.retention.ms",
        ),
        Definition("file.delete.delay.ms", LONG, 60_000, check=Range(0), synonym="log.segment.delete.delay.ms"),
        Definition("flush.messages", LONG, LONG_MAX, check=Range(1), synonym="log.flush.interval.messages"),
        Definition("flush.ms", LONG, LONG_MAX, check=Range(0), synonym="log.flush.interval.ms"),
        Definition("follower.replication.throttled.replicas", LIST, (), check=throttled_replicas),
        Definition("index.interval.bytes", INT, 4096, check=Range(0), synonym="log.index.interval.bytes"),
        Definition("internal.segment.bytes", INT, None, internal=True),
        Definition("leader.replication.throttled.replicas", LIST, (), check=throttled_replicas),
        Definition("local.retention.bytes", LONG, -2, check=Range(-2), synonym="log.local.retention.bytes"),
        Definition("local.retention.ms", LONG, -2, check=Range(-2), synonym="log.local.retention.ms"),
        Definition(
            "max.compaction.lag.ms",
            LONG,
            LONG_MAX,
            check=Range(1),
            synonym="log.cleaner.max.compaction.lag.ms",
        ),
        Definition("max.message.bytes", INT, 1_048_588, check=Range(0), synonym="message.max.bytes"),
        Definition(
            "message.timestamp.after.max.ms",
            LONG,
            3_600_000,
            check=Range(0),
            synonym="log.message.timestamp.after.max.ms",
        ),
        Definition(
            "message.timestamp.before.max.ms",
            LONG,
            LONG_MAX,
            check=Range(0),
            synonym="log.message.timestamp.before.max.ms",
        ),
        Definition(
            "message.timestamp.type",
            STRING,
            "CreateTime",
            check=OneOf(("CreateTime", "LogAppendTime")),
            synonym="log.message.timestamp.type",
        ),
        Definition(
            "min.cleanable.dirty.ratio",
            DOUBLE,
            0.5,
            check=Range(0, 1),
            synonym="log.cleaner.min.cleanable.ratio",
        ),
        Definition("min.compaction.lag.ms", LONG, 0, check=Range(0), synonym="log.cleaner.min.compaction.lag.ms"),
        Definition("min.insync.replicas", INT, 1, check=Range(1), synonym="min.insync.replicas"),
        Definition("preallocate", BOOLEAN, False, synonym="log.preallocate"),
        Definition("remote.log.copy.disable", BOOLEAN, False),
        Definition("remote.log.delete.on.disable", BOOLEAN, False),
        Definition("remote.storage.enable", BOOLEAN, False),
        Definition("retention.bytes", LONG, -1, synonym="log.retention.bytes"),
        Definition("retention.ms", LONG, 604_800_000, check=Range(-1), synonym="log.retention.ms"),
        Definition("segment.bytes", INT, 1_073_741_824, check=Range(1_048_576), synonym="log.segment.bytes"),
        Definition("segment.index.bytes", INT, 10_485_760, check=Range(4), synonym="log.index.size.max.bytes"),
        Definition("segment.jitter.ms", LONG, 0, check=Range(0), synonym="log.roll.jitter.ms"),
        Definition("segment.ms", LONG, 604_800_000, check=Range(1), synonym="log.roll.ms"),
        Definition("unclean.leader.election.enable", BOOLEAN, False, synonym="unclean.leader.election.enable"),
    )
)
