"""WriteShareGroupStateResponse: response, key 85, versions 0 to 1, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionResult(Struct):
    __match_args__ = ("partition", "error_code", "error_message")
    __slots__ = __match_args__
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 1), None, None, None, 0, False, None),
        ("ErrorCode", "error_code", "int16", (0, 1), None, None, None, 0, False, None),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1), None, None, None, False, None),
    )

    def __init__(
        self,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message


class WriteStateResult(Struct):
    __match_args__ = ("topic_id", "partitions")
    __slots__ = __match_args__
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 1), None, None, None, b"", False, None),
        ("Partitions", "partitions", "[]PartitionResult", (0, 1), None, None, None, b"", False, None),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionResult] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class WriteShareGroupStateResponse(Message):
    NAME = "WriteShareGroupStateResponse"
    KIND = "response"
    API_KEY = 85
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __match_args__ = ("results",)
    __slots__ = __match_args__
    SCHEMA = (
        ("Results", "results", "[]WriteStateResult", (0, 1), None, None, None, b"", False, None),
    )

    def __init__(self, results: list[WriteStateResult] = EMPTY) -> None:
        self.results = [] if results is EMPTY else results
