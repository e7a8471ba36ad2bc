"""TxnOffsetCommitResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TxnOffsetCommitResponsePartition(Struct):
    __slots__ = ("partition_index", "error_code")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 5)),
        ("ErrorCode", "error_code", "int16", (0, 5)),
    )

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class TxnOffsetCommitResponseTopic(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 5)),
        ("Partitions", "partitions", "[]TxnOffsetCommitResponsePartition", (0, 5)),
    )

    def __init__(self, name: str = "", partitions: list[TxnOffsetCommitResponsePartition] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class TxnOffsetCommitResponse(Message):
    KIND = "response"
    API_KEY = 28
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "topics")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 5)),
        ("Topics", "topics", "[]TxnOffsetCommitResponseTopic", (0, 5)),
    )

    def __init__(self, throttle_time_ms: int = 0, topics: list[TxnOffsetCommitResponseTopic] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
