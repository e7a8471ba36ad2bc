"""OffsetDeleteRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class OffsetDeleteRequestPartition(Struct):
    __slots__ = ("partition_index",)
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 0)),
    )

    def __init__(self, partition_index: int = 0) -> None:
        self.partition_index = partition_index


class OffsetDeleteRequestTopic(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Partitions", "partitions", "[]OffsetDeleteRequestPartition", (0, 0)),
    )

    def __init__(self, name: str = "", partitions: list[OffsetDeleteRequestPartition] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetDeleteRequest(Message):
    KIND = "request"
    API_KEY = 47
    VERSIONS = (0, 0)
    __slots__ = ("group_id", "topics")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0)),
        ("Topics", "topics", "[]OffsetDeleteRequestTopic", (0, 0)),
    )

    def __init__(self, group_id: str = "", topics: list[OffsetDeleteRequestTopic] = EMPTY) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
