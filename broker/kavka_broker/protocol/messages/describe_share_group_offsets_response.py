"""DescribeShareGroupOffsetsResponse: response, key 90, versions 0 to 1, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class DescribeShareGroupOffsetsResponsePartition(Struct):
    __match_args__ = (
        "partition_index",
        "start_offset",
        "leader_epoch",
        "lag",
        "error_code",
        "error_message",
    )
    __slots__ = __match_args__
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 1), None, None, None, 0, False, None),
        ("StartOffset", "start_offset", "int64", (0, 1), None, None, None, 0, False, None),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 1), None, None, None, 0, False, None),
        ("Lag", "lag", "int64", (1, 1), None, None, None, -1, True, None),
        ("ErrorCode", "error_code", "int16", (0, 1), None, None, None, 0, False, None),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1), None, None, None, False, None),
    )

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponseTopic(Struct):
    __match_args__ = ("topic_name", "topic_id", "partitions")
    __slots__ = __match_args__
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 1), None, None, None, "", False, None),
        ("TopicId", "topic_id", "uuid", (0, 1), None, None, None, b"", False, None),
        (
            "Partitions", "partitions", "[]DescribeShareGroupOffsetsResponsePartition",
            (0, 1), None, None, None, b"", False, None,
        ),
    )

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = ZERO,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeShareGroupOffsetsResponseGroup(Struct):
    __match_args__ = ("group_id", "topics", "error_code", "error_message")
    __slots__ = __match_args__
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 1), None, None, None, "", False, None),
        (
            "Topics", "topics", "[]DescribeShareGroupOffsetsResponseTopic",
            (0, 1), None, None, None, b"", False, None,
        ),
        ("ErrorCode", "error_code", "int16", (0, 1), None, None, None, 0, False, None),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1), None, None, None, False, None),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] = EMPTY,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponse(Message):
    NAME = "DescribeShareGroupOffsetsResponse"
    KIND = "response"
    API_KEY = 90
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __match_args__ = ("throttle_time_ms", "groups")
    __slots__ = __match_args__
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 1), None, None, None, 0, False, None),
        (
            "Groups", "groups", "[]DescribeShareGroupOffsetsResponseGroup",
            (0, 1), None, None, None, b"", False, None,
        ),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
