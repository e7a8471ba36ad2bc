"""OffsetDeleteResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class OffsetDeleteResponsePartition(Struct):
    __slots__ = ("partition_index", "error_code")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
    )

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetDeleteResponseTopic(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Partitions", "partitions", "[]OffsetDeleteResponsePartition", (0, 0)),
    )

    def __init__(self, name: str = "", partitions: list[OffsetDeleteResponsePartition] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetDeleteResponse(Message):
    KIND = "response"
    API_KEY = 47
    VERSIONS = (0, 0)
    __slots__ = ("error_code", "throttle_time_ms", "topics")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0), None, None, None, 0, True),
        ("Topics", "topics", "[]OffsetDeleteResponseTopic", (0, 0)),
    )

    def __init__(
        self,
        error_code: int = 0, throttle_time_ms: int = 0, topics: list[OffsetDeleteResponseTopic] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
