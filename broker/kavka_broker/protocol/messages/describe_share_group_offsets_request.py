"""DescribeShareGroupOffsetsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribeShareGroupOffsetsRequestTopic(Struct):
    __slots__ = ("topic_name", "partitions")
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 1)),
        ("Partitions", "partitions", "[]int32", (0, 1)),
    )

    def __init__(self, topic_name: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeShareGroupOffsetsRequestGroup(Struct):
    __slots__ = ("group_id", "topics")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 1)),
        ("Topics", "topics", "[]DescribeShareGroupOffsetsRequestTopic", (0, 1), (0, 1)),
    )

    def __init__(
        self,
        group_id: str = "", topics: list[DescribeShareGroupOffsetsRequestTopic] | None = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics


class DescribeShareGroupOffsetsRequest(Message):
    KIND = "request"
    API_KEY = 90
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("groups",)
    SCHEMA = (
        ("Groups", "groups", "[]DescribeShareGroupOffsetsRequestGroup", (0, 1)),
    )

    def __init__(self, groups: list[DescribeShareGroupOffsetsRequestGroup] = EMPTY) -> None:
        self.groups = [] if groups is EMPTY else groups
