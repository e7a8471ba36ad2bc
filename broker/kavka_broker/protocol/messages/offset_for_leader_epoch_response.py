"""OffsetForLeaderEpochResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class EpochEndOffset(Struct):
    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (2, 4)),
        ("Partition", "partition", "int32", (2, 4)),
        ("LeaderEpoch", "leader_epoch", "int32", (2, 4), None, None, None, -1, True),
        ("EndOffset", "end_offset", "int64", (2, 4), None, None, None, -1),
    )

    def __init__(
        self,
        error_code: int = 0, partition: int = 0, leader_epoch: int = -1, end_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


class OffsetForLeaderTopicResult(Struct):
    __slots__ = ("topic", "partitions")
    SCHEMA = (
        ("Topic", "topic", "string", (2, 4)),
        ("Partitions", "partitions", "[]EpochEndOffset", (2, 4)),
    )

    def __init__(self, topic: str = "", partitions: list[EpochEndOffset] = EMPTY) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetForLeaderEpochResponse(Message):
    KIND = "response"
    API_KEY = 23
    VERSIONS = (2, 4)
    FLEXIBLE_FROM = 4
    __slots__ = ("throttle_time_ms", "topics")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (2, 4), None, None, None, 0, True),
        ("Topics", "topics", "[]OffsetForLeaderTopicResult", (2, 4)),
    )

    def __init__(self, throttle_time_ms: int = 0, topics: list[OffsetForLeaderTopicResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
