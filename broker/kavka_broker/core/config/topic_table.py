"""The topic configs of Apache Kafka 4.3 and one of 4.4, each with the broker config that stands in where the topic says
nothing, and our own, with which a topic limits the rate of its clients (`quotas.topic_quota`).
"""

from typing import Final

from kavka_broker.core.config.definition import (
    ConfigType,
    Definition,
    OneOf,
    Range,
    by_name,
    throttled_replicas,
)
from kavka_broker.core.config.topic_bounds import RECORD_BYTES_MAX, SEGMENT_BYTES_MIN

BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST
LONG_MAX: Final = 2**63 - 1

# Keys of our own: they begin with "kavka.", so none can meet one of Kafka's.
PARTITION_CONSUMER_RATE: Final = "kavka.partition.consumer.byte.rate"
PARTITION_PRODUCER_RATE: Final = "kavka.partition.producer.byte.rate"
TOPIC_CONSUMER_RATE: Final = "kavka.topic.consumer.byte.rate"
TOPIC_PRODUCER_RATE: Final = "kavka.topic.producer.byte.rate"
RATE_KEYS: Final = frozenset(
    {PARTITION_CONSUMER_RATE, PARTITION_PRODUCER_RATE, TOPIC_CONSUMER_RATE, TOPIC_PRODUCER_RATE}
)

TOPIC_KEYS: Final = by_name(
    (
        Definition(
            "cleanup.policy",
            LIST,
            ("delete",),
            check=OneOf(("compact", "delete")),
            synonym="log.cleanup.policy",
            served=True,
        ),
        Definition(
            "compression.gzip.level",
            INT,
            -1,
            check=Range(1, 9, also=(-1,)),
            synonym="compression.gzip.level",
            served=True,
        ),
        Definition("compression.lz4.level", INT, 9, check=Range(1, 17), synonym="compression.lz4.level", served=True),
        Definition(
            "compression.type",
            STRING,
            "producer",
            check=OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
            synonym="compression.type",
            served=True,
        ),
        Definition(
            "compression.zstd.level", INT, 3, check=Range(-131_072, 22), synonym="compression.zstd.level", served=True
        ),
        Definition(
            "delete.retention.ms",
            LONG,
            86_400_000,
            check=Range(0),
            synonym="log.cleaner.delete.retention.ms",
            served=True,
        ),
        Definition(
            "file.delete.delay.ms", LONG, 60_000, check=Range(0), synonym="log.segment.delete.delay.ms", served=True
        ),
        Definition(
            "flush.messages", LONG, LONG_MAX, check=Range(1), synonym="log.flush.interval.messages", served=True
        ),
        Definition("flush.ms", LONG, LONG_MAX, check=Range(0), synonym="log.flush.interval.ms", served=True),
        Definition("follower.replication.throttled.replicas", LIST, (), check=throttled_replicas, served=True),
        Definition("index.interval.bytes", INT, 4096, check=Range(0), synonym="log.index.interval.bytes", served=True),
        Definition("internal.segment.bytes", INT, None, internal=True, served=True),
        Definition(PARTITION_CONSUMER_RATE, LONG, LONG_MAX, check=Range(1), served=True),
        Definition(PARTITION_PRODUCER_RATE, LONG, LONG_MAX, check=Range(1), served=True),
        Definition(TOPIC_CONSUMER_RATE, LONG, LONG_MAX, check=Range(1), served=True),
        Definition(TOPIC_PRODUCER_RATE, LONG, LONG_MAX, check=Range(1), served=True),
        Definition("leader.replication.throttled.replicas", LIST, (), check=throttled_replicas, served=True),
        Definition("local.retention.bytes", LONG, -2, check=Range(-2), synonym="log.local.retention.bytes"),
        Definition("local.retention.ms", LONG, -2, check=Range(-2), synonym="log.local.retention.ms"),
        Definition(
            "max.compaction.lag.ms",
            LONG,
            LONG_MAX,
            check=Range(1),
            synonym="log.cleaner.max.compaction.lag.ms",
            served=True,
        ),
        Definition(
            "max.decompressed.message.bytes",
            INT,
            RECORD_BYTES_MAX,
            check=Range(1, RECORD_BYTES_MAX),
            synonym="max.decompressed.message.bytes",
            served=True,
        ),
        Definition("max.message.bytes", INT, 1_048_588, check=Range(0), synonym="message.max.bytes", served=True),
        Definition(
            "message.timestamp.after.max.ms",
            LONG,
            3_600_000,
            check=Range(0),
            synonym="log.message.timestamp.after.max.ms",
            served=True,
        ),
        Definition(
            "message.timestamp.before.max.ms",
            LONG,
            LONG_MAX,
            check=Range(0),
            synonym="log.message.timestamp.before.max.ms",
            served=True,
        ),
        Definition(
            "message.timestamp.type",
            STRING,
            "CreateTime",
            check=OneOf(("CreateTime", "LogAppendTime")),
            synonym="log.message.timestamp.type",
            served=True,
        ),
        Definition(
            "min.cleanable.dirty.ratio",
            DOUBLE,
            0.5,
            check=Range(0, 1),
            synonym="log.cleaner.min.cleanable.ratio",
            served=True,
        ),
        Definition(
            "min.compaction.lag.ms", LONG, 0, check=Range(0), synonym="log.cleaner.min.compaction.lag.ms", served=True
        ),
        Definition("min.insync.replicas", INT, 1, check=Range(1), synonym="min.insync.replicas", served=True),
        Definition("preallocate", BOOLEAN, False, synonym="log.preallocate"),
        Definition("remote.log.copy.disable", BOOLEAN, False),
        Definition("remote.log.delete.on.disable", BOOLEAN, False),
        Definition("remote.storage.enable", BOOLEAN, False),
        Definition("retention.bytes", LONG, -1, synonym="log.retention.bytes", served=True),
        Definition("retention.ms", LONG, 604_800_000, check=Range(-1), synonym="log.retention.ms", served=True),
        Definition(
            "segment.bytes",
            INT,
            1_073_741_824,
            check=Range(SEGMENT_BYTES_MIN),
            synonym="log.segment.bytes",
            served=True,
        ),
        Definition(
            "segment.index.bytes", INT, 10_485_760, check=Range(4), synonym="log.index.size.max.bytes", served=True
        ),
        Definition("segment.jitter.ms", LONG, 0, check=Range(0), synonym="log.roll.jitter.ms"),
        Definition("segment.ms", LONG, 604_800_000, check=Range(1), synonym="log.roll.ms", served=True),
        Definition(
            "unclean.leader.election.enable", BOOLEAN, False, synonym="unclean.leader.election.enable", served=True
        ),
    )
)
