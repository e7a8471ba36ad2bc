"""DescribeProducersRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TopicRequest(Struct):
    __slots__ = ("name", "partition_indexes")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("PartitionIndexes", "partition_indexes", "[]int32", (0, 0)),
    )

    def __init__(self, name: str = "", partition_indexes: list[int] = EMPTY) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class DescribeProducersRequest(Message):
    KIND = "request"
    API_KEY = 61
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("topics",)
    SCHEMA = (
        ("Topics", "topics", "[]TopicRequest", (0, 0)),
    )

    def __init__(self, topics: list[TopicRequest] = EMPTY) -> None:
        self.topics = [] if topics is EMPTY else topics
