"""AlterShareGroupOffsetsRequest: request, key 91, version 0, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AlterShareGroupOffsetsRequestPartition(Struct):
    __match_args__ = ("partition_index", "start_offset")
    __slots__ = __match_args__
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 0), None, None, None, 0, False, None),
        ("StartOffset", "start_offset", "int64", (0, 0), None, None, None, 0, False, None),
    )

    def __init__(self, partition_index: int = 0, start_offset: int = 0) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset


class AlterShareGroupOffsetsRequestTopic(Struct):
    __match_args__ = ("topic_name", "partitions")
    __slots__ = __match_args__
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 0), None, None, None, "", False, None),
        (
            "Partitions", "partitions", "[]AlterShareGroupOffsetsRequestPartition",
            (0, 0), None, None, None, b"", False, None,
        ),
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterShareGroupOffsetsRequest(Message):
    NAME = "AlterShareGroupOffsetsRequest"
    KIND = "request"
    API_KEY = 91
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __match_args__ = ("group_id", "topics")
    __slots__ = __match_args__
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0), None, None, None, "", False, None),
        (
            "Topics", "topics", "[]AlterShareGroupOffsetsRequestTopic",
            (0, 0), None, None, None, b"", False, None,
        ),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
