"""ConsumerGroupHeartbeatResponse: response, key 68, versions 0 to 1, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class TopicPartitions(Struct):
    __match_args__ = ("topic_id", "partitions")
    __slots__ = __match_args__
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 1), None, None, None, b"", False, None),
        ("Partitions", "partitions", "[]int32", (0, 1), None, None, None, b"", False, None),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[int] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class Assignment(Struct):
    __match_args__ = ("topic_partitions",)
    __slots__ = __match_args__
    SCHEMA = (
        (
            "TopicPartitions", "topic_partitions", "[]TopicPartitions",
            (0, 1), None, None, None, b"", False, None,
        ),
    )

    def __init__(self, topic_partitions: list[TopicPartitions] = EMPTY) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions


class ConsumerGroupHeartbeatResponse(Message):
    NAME = "ConsumerGroupHeartbeatResponse"
    KIND = "response"
    API_KEY = 68
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __match_args__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )
    __slots__ = __match_args__
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 1), None, None, None, 0, False, None),
        ("ErrorCode", "error_code", "int16", (0, 1), None, None, None, 0, False, None),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1), None, None, None, False, None),
        ("MemberId", "member_id", "string", (0, 1), (0, 1), None, None, None, False, None),
        ("MemberEpoch", "member_epoch", "int32", (0, 1), None, None, None, 0, False, None),
        (
            "HeartbeatIntervalMs", "heartbeat_interval_ms", "int32",
            (0, 1), None, None, None, 0, False, None,
        ),
        ("Assignment", "assignment", "Assignment", (0, 1), (0, 1), None, None, None, False, None),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
