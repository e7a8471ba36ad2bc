"""DeleteShareGroupStateRequest: request, key 86, version 0, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionData(Struct):
    __match_args__ = ("partition",)
    __slots__ = __match_args__
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 0), None, None, None, 0, False, None),
    )

    def __init__(self, partition: int = 0) -> None:
        self.partition = partition


class DeleteStateData(Struct):
    __match_args__ = ("topic_id", "partitions")
    __slots__ = __match_args__
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0), None, None, None, b"", False, None),
        ("Partitions", "partitions", "[]PartitionData", (0, 0), None, None, None, b"", False, None),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class DeleteShareGroupStateRequest(Message):
    NAME = "DeleteShareGroupStateRequest"
    KIND = "request"
    API_KEY = 86
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __match_args__ = ("group_id", "topics")
    __slots__ = __match_args__
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0), None, None, None, "", False, None),
        ("Topics", "topics", "[]DeleteStateData", (0, 0), None, None, None, b"", False, None),
    )

    def __init__(self, group_id: str = "", topics: list[DeleteStateData] = EMPTY) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
