"""TxnOffsetCommitResponse: response, key 28, versions 0 to 5, flexible from 3.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TxnOffsetCommitResponsePartition(Struct):
    __match_args__ = ("partition_index", "error_code")
    __slots__ = __match_args__
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 5), None, None, None, 0, False, None),
        ("ErrorCode", "error_code", "int16", (0, 5), None, None, None, 0, False, None),
    )

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class TxnOffsetCommitResponseTopic(Struct):
    __match_args__ = ("name", "partitions")
    __slots__ = __match_args__
    SCHEMA = (
        ("Name", "name", "string", (0, 5), None, None, None, "", False, None),
        (
            "Partitions", "partitions", "[]TxnOffsetCommitResponsePartition",
            (0, 5), None, None, None, b"", False, None,
        ),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class TxnOffsetCommitResponse(Message):
    NAME = "TxnOffsetCommitResponse"
    KIND = "response"
    API_KEY = 28
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __match_args__ = ("throttle_time_ms", "topics")
    __slots__ = __match_args__
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 5), None, None, None, 0, False, None),
        (
            "Topics", "topics", "[]TxnOffsetCommitResponseTopic",
            (0, 5), None, None, None, b"", False, None,
        ),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
