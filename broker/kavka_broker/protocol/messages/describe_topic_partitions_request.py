"""DescribeTopicPartitionsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TopicRequest(Struct):
    __slots__ = ("name",)
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
    )

    def __init__(self, name: str = "") -> None:
        self.name = name


class Cursor(Struct):
    __slots__ = ("topic_name", "partition_index")
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 0)),
        ("PartitionIndex", "partition_index", "int32", (0, 0)),
    )

    def __init__(self, topic_name: str = "", partition_index: int = 0) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsRequest(Message):
    KIND = "request"
    API_KEY = 75
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("topics", "response_partition_limit", "cursor")
    SCHEMA = (
        ("Topics", "topics", "[]TopicRequest", (0, 0)),
        ("ResponsePartitionLimit", "response_partition_limit", "int32", (0, 0), None, None, None, 2000),
        ("Cursor", "cursor", "Cursor", (0, 0), (0, 0), None, None, None),
    )

    def __init__(
        self,
        topics: list[TopicRequest] = EMPTY, response_partition_limit: int = 2000, cursor: Cursor | None = None,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor
