"""RemoteLogSegmentMetadataUpdateRecord: metadata, key 1, version 0, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import ZERO, Message, Struct, frozen


class TopicIdPartitionEntry(Struct):
    __match_args__ = ("name", "id", "partition")
    __slots__ = __match_args__
    SCHEMA = (
        ("Name", "name", "string", (0, 0), None, None, None, "", False, None),
        ("Id", "id", "uuid", (0, 0), None, None, None, b"", False, None),
        ("Partition", "partition", "int32", (0, 0), None, None, None, 0, False, None),
    )

    def __init__(self, name: str = "", id: bytes = ZERO, partition: int = 0) -> None:
        self.name = name
        self.id = id
        self.partition = partition


DEFAULT_TOPIC_ID_PARTITION_ENTRY = frozen(TopicIdPartitionEntry)


class RemoteLogSegmentIdEntry(Struct):
    __match_args__ = ("topic_id_partition", "id")
    __slots__ = __match_args__
    SCHEMA = (
        (
            "TopicIdPartition", "topic_id_partition", "TopicIdPartitionEntry",
            (0, 0), None, None, None, b"", False, None,
        ),
        ("Id", "id", "uuid", (0, 0), None, None, None, b"", False, None),
    )

    def __init__(
        self,
        topic_id_partition: TopicIdPartitionEntry = DEFAULT_TOPIC_ID_PARTITION_ENTRY,
        id: bytes = ZERO,
    ) -> None:
        self.topic_id_partition = topic_id_partition
        self.id = id


DEFAULT_REMOTE_LOG_SEGMENT_ID_ENTRY = frozen(RemoteLogSegmentIdEntry)


class RemoteLogSegmentMetadataUpdateRecord(Message):
    NAME = "RemoteLogSegmentMetadataUpdateRecord"
    KIND = "metadata"
    API_KEY = 1
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __match_args__ = (
        "remote_log_segment_id",
        "broker_id",
        "event_timestamp_ms",
        "custom_metadata",
        "remote_log_segment_state",
    )
    __slots__ = __match_args__
    SCHEMA = (
        (
            "RemoteLogSegmentId", "remote_log_segment_id", "RemoteLogSegmentIdEntry",
            (0, 0), None, None, None, b"", False, None,
        ),
        ("BrokerId", "broker_id", "int32", (0, 0), None, None, None, 0, False, None),
        ("EventTimestampMs", "event_timestamp_ms", "int64", (0, 0), None, None, None, 0, False, None),
        ("CustomMetadata", "custom_metadata", "bytes", (0, 0), (0, 0), None, None, None, False, None),
        (
            "RemoteLogSegmentState", "remote_log_segment_state", "int8",
            (0, 0), None, None, None, 0, False, None,
        ),
    )

    def __init__(
        self,
        remote_log_segment_id: RemoteLogSegmentIdEntry = DEFAULT_REMOTE_LOG_SEGMENT_ID_ENTRY,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
    ) -> None:
        self.remote_log_segment_id = remote_log_segment_id
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
