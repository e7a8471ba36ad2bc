"""DescribeLogDirsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribableLogDirTopic(Struct):
    __slots__ = ("topic", "partitions")
    SCHEMA = (
        ("Topic", "topic", "string", (1, 5)),
        ("Partitions", "partitions", "[]int32", (1, 5)),
    )

    def __init__(self, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeLogDirsRequest(Message):
    KIND = "request"
    API_KEY = 35
    VERSIONS = (1, 5)
    FLEXIBLE_FROM = 2
    __slots__ = ("topics",)
    SCHEMA = (
        ("Topics", "topics", "[]DescribableLogDirTopic", (1, 5), (1, 5)),
    )

    def __init__(self, topics: list[DescribableLogDirTopic] | None = EMPTY) -> None:
        self.topics = [] if topics is EMPTY else topics
