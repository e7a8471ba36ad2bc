"""DescribeQuorumRequest: request, key 55, versions 0 to 2, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message, Struct


class PartitionData(Struct):
    __match_args__ = ("partition_index",)
    __slots__ = __match_args__
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 2)),
    )

    def __init__(self, partition_index: int = 0) -> None:
        self.partition_index = partition_index


class TopicData(Struct):
    __match_args__ = ("topic_name", "partitions")
    __slots__ = __match_args__
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 2)),
        ("Partitions", "partitions", "[]PartitionData", (0, 2)),
    )

    def __init__(self, topic_name: str = "", partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeQuorumRequest(Message):
    NAME = "DescribeQuorumRequest"
    KIND = "request"
    API_KEY = 55
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __match_args__ = ("topics",)
    __slots__ = __match_args__
    SCHEMA = (
        ("Topics", "topics", "[]TopicData", (0, 2)),
    )

    def __init__(self, topics: list[TopicData] = EMPTY) -> None:
        self.topics = [] if topics is EMPTY else topics
