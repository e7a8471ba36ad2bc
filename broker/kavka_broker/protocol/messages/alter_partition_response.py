"""AlterPartitionResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionData(Struct):
    __slots__ = (
        "partition_index", "error_code", "leader_id", "leader_epoch", "isr", "leader_recovery_state",
        "partition_epoch",
    )
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (2, 3)),
        ("ErrorCode", "error_code", "int16", (2, 3)),
        ("LeaderId", "leader_id", "int32", (2, 3)),
        ("LeaderEpoch", "leader_epoch", "int32", (2, 3)),
        ("Isr", "isr", "[]int32", (2, 3)),
        ("LeaderRecoveryState", "leader_recovery_state", "int8", (2, 3), None, None, None, 0, True),
        ("PartitionEpoch", "partition_epoch", "int32", (2, 3)),
    )

    def __init__(
        self,
        partition_index: int = 0, error_code: int = 0, leader_id: int = 0, leader_epoch: int = 0,
        isr: list[int] = EMPTY, leader_recovery_state: int = 0, partition_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.isr = [] if isr is EMPTY else isr
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch


class TopicData(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (2, 3), None, None, None, b"", True),
        ("Partitions", "partitions", "[]PartitionData", (2, 3)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class AlterPartitionResponse(Message):
    KIND = "response"
    API_KEY = 56
    VERSIONS = (2, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "error_code", "topics")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (2, 3)),
        ("ErrorCode", "error_code", "int16", (2, 3)),
        ("Topics", "topics", "[]TopicData", (2, 3)),
    )

    def __init__(self, throttle_time_ms: int = 0, error_code: int = 0, topics: list[TopicData] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
