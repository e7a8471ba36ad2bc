"""OffsetCommitResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class OffsetCommitResponsePartition(Struct):
    __slots__ = ("partition_index", "error_code")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (2, 10)),
        ("ErrorCode", "error_code", "int16", (2, 10)),
    )

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetCommitResponseTopic(Struct):
    __slots__ = ("name", "topic_id", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (2, 9), None, None, None, "", True),
        ("TopicId", "topic_id", "uuid", (10, 10), None, None, None, b"", True),
        ("Partitions", "partitions", "[]OffsetCommitResponsePartition", (2, 10)),
    )

    def __init__(
        self,
        name: str = "", topic_id: bytes = ZERO, partitions: list[OffsetCommitResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetCommitResponse(Message):
    KIND = "response"
    API_KEY = 8
    VERSIONS = (2, 10)
    FLEXIBLE_FROM = 8
    __slots__ = ("throttle_time_ms", "topics")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (3, 10), None, None, None, 0, True),
        ("Topics", "topics", "[]OffsetCommitResponseTopic", (2, 10)),
    )

    def __init__(self, throttle_time_ms: int = 0, topics: list[OffsetCommitResponseTopic] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
