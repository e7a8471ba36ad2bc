"""DescribeShareGroupOffsetsResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class DescribeShareGroupOffsetsResponsePartition(Struct):
    __slots__ = ("partition_index", "start_offset", "leader_epoch", "lag", "error_code", "error_message")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 1)),
        ("StartOffset", "start_offset", "int64", (0, 1)),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 1)),
        ("Lag", "lag", "int64", (1, 1), None, None, None, -1, True),
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1), None, None, None),
    )

    def __init__(
        self,
        partition_index: int = 0, start_offset: int = 0, leader_epoch: int = 0, lag: int = -1, error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponseTopic(Struct):
    __slots__ = ("topic_name", "topic_id", "partitions")
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 1)),
        ("TopicId", "topic_id", "uuid", (0, 1)),
        ("Partitions", "partitions", "[]DescribeShareGroupOffsetsResponsePartition", (0, 1)),
    )

    def __init__(
        self,
        topic_name: str = "", topic_id: bytes = ZERO,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeShareGroupOffsetsResponseGroup(Struct):
    __slots__ = ("group_id", "topics", "error_code", "error_message")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 1)),
        ("Topics", "topics", "[]DescribeShareGroupOffsetsResponseTopic", (0, 1)),
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1), None, None, None),
    )

    def __init__(
        self,
        group_id: str = "", topics: list[DescribeShareGroupOffsetsResponseTopic] = EMPTY, error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponse(Message):
    KIND = "response"
    API_KEY = 90
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "groups")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 1)),
        ("Groups", "groups", "[]DescribeShareGroupOffsetsResponseGroup", (0, 1)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, groups: list[DescribeShareGroupOffsetsResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
