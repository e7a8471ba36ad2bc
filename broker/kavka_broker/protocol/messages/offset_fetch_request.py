"""OffsetFetchRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class OffsetFetchRequestTopic(Struct):
    __slots__ = ("name", "partition_indexes")
    SCHEMA = (
        ("Name", "name", "string", (1, 7)),
        ("PartitionIndexes", "partition_indexes", "[]int32", (1, 7)),
    )

    def __init__(self, name: str = "", partition_indexes: list[int] = EMPTY) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class OffsetFetchRequestTopics(Struct):
    __slots__ = ("name", "topic_id", "partition_indexes")
    SCHEMA = (
        ("Name", "name", "string", (8, 9), None, None, None, "", True),
        ("TopicId", "topic_id", "uuid", (10, 10), None, None, None, b"", True),
        ("PartitionIndexes", "partition_indexes", "[]int32", (8, 10)),
    )

    def __init__(self, name: str = "", topic_id: bytes = ZERO, partition_indexes: list[int] = EMPTY) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class OffsetFetchRequestGroup(Struct):
    __slots__ = ("group_id", "member_id", "member_epoch", "topics")
    SCHEMA = (
        ("GroupId", "group_id", "string", (8, 10)),
        ("MemberId", "member_id", "string", (9, 10), (9, 10), None, None, None, True),
        ("MemberEpoch", "member_epoch", "int32", (9, 10), None, None, None, -1, True),
        ("Topics", "topics", "[]OffsetFetchRequestTopics", (8, 10), (8, 10)),
    )

    def __init__(
        self,
        group_id: str = "", member_id: str | None = None, member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = [] if topics is EMPTY else topics


class OffsetFetchRequest(Message):
    KIND = "request"
    API_KEY = 9
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    __slots__ = ("group_id", "topics", "groups", "require_stable")
    SCHEMA = (
        ("GroupId", "group_id", "string", (1, 7)),
        ("Topics", "topics", "[]OffsetFetchRequestTopic", (1, 7), (2, 7)),
        ("Groups", "groups", "[]OffsetFetchRequestGroup", (8, 10)),
        ("RequireStable", "require_stable", "bool", (7, 10)),
    )

    def __init__(
        self,
        group_id: str = "", topics: list[OffsetFetchRequestTopic] | None = EMPTY,
        groups: list[OffsetFetchRequestGroup] = EMPTY, require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.groups = [] if groups is EMPTY else groups
        self.require_stable = require_stable
