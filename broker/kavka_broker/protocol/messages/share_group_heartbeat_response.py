"""ShareGroupHeartbeatResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (1, 1)),
        ("Partitions", "partitions", "[]int32", (1, 1)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[int] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class Assignment(Struct):
    __slots__ = ("topic_partitions",)
    SCHEMA = (
        ("TopicPartitions", "topic_partitions", "[]TopicPartitions", (1, 1)),
    )

    def __init__(self, topic_partitions: list[TopicPartitions] = EMPTY) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions


class ShareGroupHeartbeatResponse(Message):
    KIND = "response"
    API_KEY = 76
    VERSIONS = (1, 1)
    FLEXIBLE_FROM = 1
    __slots__ = (
        "throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms",
        "assignment",
    )
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 1)),
        ("ErrorCode", "error_code", "int16", (1, 1)),
        ("ErrorMessage", "error_message", "string", (1, 1), (1, 1), None, None, None),
        ("MemberId", "member_id", "string", (1, 1), (1, 1), None, None, None),
        ("MemberEpoch", "member_epoch", "int32", (1, 1)),
        ("HeartbeatIntervalMs", "heartbeat_interval_ms", "int32", (1, 1)),
        ("Assignment", "assignment", "Assignment", (1, 1), (1, 1), None, None, None),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None,
        member_id: str | None = None, member_epoch: int = 0, heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
