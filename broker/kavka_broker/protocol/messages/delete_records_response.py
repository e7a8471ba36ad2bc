"""DeleteRecordsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DeleteRecordsPartitionResult(Struct):
    __slots__ = ("partition_index", "low_watermark", "error_code")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 2)),
        ("LowWatermark", "low_watermark", "int64", (0, 2)),
        ("ErrorCode", "error_code", "int16", (0, 2)),
    )

    def __init__(self, partition_index: int = 0, low_watermark: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code


class DeleteRecordsTopicResult(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 2)),
        ("Partitions", "partitions", "[]DeleteRecordsPartitionResult", (0, 2)),
    )

    def __init__(self, name: str = "", partitions: list[DeleteRecordsPartitionResult] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class DeleteRecordsResponse(Message):
    KIND = "response"
    API_KEY = 21
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "topics")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 2)),
        ("Topics", "topics", "[]DeleteRecordsTopicResult", (0, 2)),
    )

    def __init__(self, throttle_time_ms: int = 0, topics: list[DeleteRecordsTopicResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
