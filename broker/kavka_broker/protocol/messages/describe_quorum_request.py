"""DescribeQuorumRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class PartitionData(Struct):
    __slots__ = ("partition_index",)
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 2)),
    )

    def __init__(self, partition_index: int = 0) -> None:
        self.partition_index = partition_index


class TopicData(Struct):
    __slots__ = ("topic_name", "partitions")
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 2)),
        ("Partitions", "partitions", "[]PartitionData", (0, 2)),
    )

    def __init__(self, topic_name: str = "", partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeQuorumRequest(Message):
    KIND = "request"
    API_KEY = 55
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = ("topics",)
    SCHEMA = (
        ("Topics", "topics", "[]TopicData", (0, 2)),
    )

    def __init__(self, topics: list[TopicData] = EMPTY) -> None:
        self.topics = [] if topics is EMPTY else topics
