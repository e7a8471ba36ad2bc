"""DescribeShareGroupOffsetsRequest: request, key 90, versions 0 to 1, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribeShareGroupOffsetsRequestTopic(Struct):
    __match_args__ = ("topic_name", "partitions")
    __slots__ = __match_args__
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 1), None, None, None, "", False, None),
        ("Partitions", "partitions", "[]int32", (0, 1), None, None, None, b"", False, None),
    )

    def __init__(self, topic_name: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeShareGroupOffsetsRequestGroup(Struct):
    __match_args__ = ("group_id", "topics")
    __slots__ = __match_args__
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 1), None, None, None, "", False, None),
        (
            "Topics", "topics", "[]DescribeShareGroupOffsetsRequestTopic",
            (0, 1), (0, 1), None, None, b"", False, None,
        ),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics


class DescribeShareGroupOffsetsRequest(Message):
    NAME = "DescribeShareGroupOffsetsRequest"
    KIND = "request"
    API_KEY = 90
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __match_args__ = ("groups",)
    __slots__ = __match_args__
    SCHEMA = (
        (
            "Groups", "groups", "[]DescribeShareGroupOffsetsRequestGroup",
            (0, 1), None, None, None, b"", False, None,
        ),
    )

    def __init__(self, groups: list[DescribeShareGroupOffsetsRequestGroup] = EMPTY) -> None:
        self.groups = [] if groups is EMPTY else groups
