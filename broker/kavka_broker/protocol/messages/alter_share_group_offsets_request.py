"""AlterShareGroupOffsetsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AlterShareGroupOffsetsRequestPartition(Struct):
    __slots__ = ("partition_index", "start_offset")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 0)),
        ("StartOffset", "start_offset", "int64", (0, 0)),
    )

    def __init__(self, partition_index: int = 0, start_offset: int = 0) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset


class AlterShareGroupOffsetsRequestTopic(Struct):
    __slots__ = ("topic_name", "partitions")
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 0)),
        ("Partitions", "partitions", "[]AlterShareGroupOffsetsRequestPartition", (0, 0)),
    )

    def __init__(
        self,
        topic_name: str = "", partitions: list[AlterShareGroupOffsetsRequestPartition] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterShareGroupOffsetsRequest(Message):
    KIND = "request"
    API_KEY = 91
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "topics")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0)),
        ("Topics", "topics", "[]AlterShareGroupOffsetsRequestTopic", (0, 0)),
    )

    def __init__(self, group_id: str = "", topics: list[AlterShareGroupOffsetsRequestTopic] = EMPTY) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
