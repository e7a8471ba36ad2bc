"""TxnOffsetCommitResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class TxnOffsetCommitResponsePartition(Struct):
    __slots__ = ("partition_index", "error_code")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 6)),
        ("ErrorCode", "error_code", "int16", (0, 6)),
    )

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class TxnOffsetCommitResponseTopic(Struct):
    __slots__ = ("name", "topic_id", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 5), None, None, None, "", True),
        ("TopicId", "topic_id", "uuid", (6, 6), None, None, None, b"", True),
        ("Partitions", "partitions", "[]TxnOffsetCommitResponsePartition", (0, 6)),
    )

    def __init__(
        self,
        name: str = "", topic_id: bytes = ZERO, partitions: list[TxnOffsetCommitResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class TxnOffsetCommitResponse(Message):
    KIND = "response"
    API_KEY = 28
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "topics")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 6)),
        ("Topics", "topics", "[]TxnOffsetCommitResponseTopic", (0, 6)),
    )

    def __init__(self, throttle_time_ms: int = 0, topics: list[TxnOffsetCommitResponseTopic] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
