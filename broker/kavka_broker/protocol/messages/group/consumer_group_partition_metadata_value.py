"""ConsumerGroupPartitionMetadataValue."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionMetadata(Struct):
    __slots__ = ("partition", "racks")
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 0)),
        ("Racks", "racks", "[]string", (0, 0)),
    )

    def __init__(self, partition: int = 0, racks: list[str] = EMPTY) -> None:
        self.partition = partition
        self.racks = [] if racks is EMPTY else racks


class TopicMetadata(Struct):
    __slots__ = ("topic_id", "topic_name", "num_partitions", "partition_metadata")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("TopicName", "topic_name", "string", (0, 0)),
        ("NumPartitions", "num_partitions", "int32", (0, 0)),
        ("PartitionMetadata", "partition_metadata", "[]PartitionMetadata", (0, 0)),
    )

    def __init__(
        self,
        topic_id: bytes = ZERO, topic_name: str = "", num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata = [] if partition_metadata is EMPTY else partition_metadata


class ConsumerGroupPartitionMetadataValue(Message):
    KIND = "coordinator-value"
    API_KEY = 4
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("topics",)
    SCHEMA = (
        ("Topics", "topics", "[]TopicMetadata", (0, 0)),
    )

    def __init__(self, topics: list[TopicMetadata] = EMPTY) -> None:
        self.topics = [] if topics is EMPTY else topics
