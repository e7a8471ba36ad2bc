"""The configuration of one topic's logs, typed.

A value comes from the topic's own override, else from the broker's key of the same meaning (`retention.ms` from
`log.retention.ms`, else `log.retention.minutes`, else `log.retention.hours`), else from Kafka's default. Storage reads
nothing but this plain record, so it never sees a name or a string of Kafka's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.topic_table import TOPIC_KEYS

LONG_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Every topic config of Apache Kafka, and ours, under its own name, dots as underscores, with its default."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    internal_segment_bytes: int | None = None
    kavka_partition_consumer_byte_rate: int = LONG_MAX
    kavka_partition_producer_byte_rate: int = LONG_MAX
    kavka_topic_consumer_byte_rate: int = LONG_MAX
    kavka_topic_producer_byte_rate: int = LONG_MAX
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = LONG_MAX
    max_decompressed_message_bytes: int = 2_147_483_639
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False

    def __post_init__(self) -> None:
        assert self.segment_bytes_max >= 1, f"no record goes into a segment of {self.segment_bytes_max} bytes"
        assert self.flush_messages >= 1, self.flush_messages
        assert self.index_interval_bytes >= 0, self.index_interval_bytes
        assert self.max_message_bytes >= 0, self.max_message_bytes

    @property
    def deletes(self) -> bool:
        """Whether old segments are deleted by time and size."""
        return "delete" in self.cleanup_policy

    @property
    def compacts(self) -> bool:
        """Whether only the last record of each key is kept."""
        return "compact" in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """The age at which the active segment is rolled: it cannot be compacted before."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms

    @property
    def log_append_time(self) -> bool:
        """Whether the broker stamps records, instead of the producer."""
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def segment_bytes_max(self) -> int:
        """The size at which a segment is full. Kafka's internal key may go below the public minimum of 1 MiB, and takes
        numbers below 1, which count here as if it were not set.
        """
        internal = self.internal_segment_bytes
        return self.segment_bytes if internal is None or internal < 1 else internal


assert {name.replace(".", "_"): definition.default for name, definition in TOPIC_KEYS.items()} == {
    field.name: field.default for field in fields(LogConfig)
}, "the record and the table have other keys, or other defaults"


def check_topic_config(overrides: Mapping[str, str]) -> None:
    """Check that every override is known, can be read and goes with the others. Raises ConfigError."""
    config = with_overrides(LogConfig(), overrides)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError("min.compaction.lag.ms", f"is above max.compaction.lag.ms ({config.max_compaction_lag_ms})")
    if config.remote_storage_enable:
        raise ConfigError("remote.storage.enable", "this broker has no remote storage; write false")


def with_overrides(config: LogConfig, overrides: Mapping[str, str]) -> LogConfig:
    """Lay overrides by Kafka's names over the config. Raises ConfigError."""
    values: dict[str, Any] = {}
    for name, text in overrides.items():
        definition = TOPIC_KEYS.get(name)
        if definition is None:
            raise ConfigError(name, "is not a config of a topic; remove it or correct its name")
        values[name.replace(".", "_")] = definition.parse(text)
    return replace(config, **values) if values else config
