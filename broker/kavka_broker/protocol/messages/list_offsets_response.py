"""ListOffsetsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ListOffsetsPartitionResponse(Struct):
    __slots__ = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (1, 11)),
        ("ErrorCode", "error_code", "int16", (1, 11)),
        ("Timestamp", "timestamp", "int64", (1, 11), None, None, None, -1),
        ("Offset", "offset", "int64", (1, 11), None, None, None, -1),
        ("LeaderEpoch", "leader_epoch", "int32", (4, 11), None, None, None, -1),
    )

    def __init__(
        self,
        partition_index: int = 0, error_code: int = 0, timestamp: int = -1, offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


class ListOffsetsTopicResponse(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (1, 11)),
        ("Partitions", "partitions", "[]ListOffsetsPartitionResponse", (1, 11)),
    )

    def __init__(self, name: str = "", partitions: list[ListOffsetsPartitionResponse] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class ListOffsetsResponse(Message):
    KIND = "response"
    API_KEY = 2
    VERSIONS = (1, 11)
    FLEXIBLE_FROM = 6
    __slots__ = ("throttle_time_ms", "topics")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (2, 11), None, None, None, 0, True),
        ("Topics", "topics", "[]ListOffsetsTopicResponse", (1, 11)),
    )

    def __init__(self, throttle_time_ms: int = 0, topics: list[ListOffsetsTopicResponse] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
