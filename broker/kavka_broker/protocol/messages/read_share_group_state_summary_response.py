"""ReadShareGroupStateSummaryResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionResult(Struct):
    __slots__ = (
        "partition", "error_code", "error_message", "state_epoch", "leader_epoch", "start_offset",
        "delivery_complete_count",
    )
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 1)),
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1), None, None, None),
        ("StateEpoch", "state_epoch", "int32", (0, 1)),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 1)),
        ("StartOffset", "start_offset", "int64", (0, 1)),
        ("DeliveryCompleteCount", "delivery_complete_count", "int32", (1, 1), None, None, None, -1, True),
    )

    def __init__(
        self,
        partition: int = 0, error_code: int = 0, error_message: str | None = None, state_epoch: int = 0,
        leader_epoch: int = 0, start_offset: int = 0, delivery_complete_count: int = -1,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count


class ReadStateSummaryResult(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 1)),
        ("Partitions", "partitions", "[]PartitionResult", (0, 1)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionResult] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ReadShareGroupStateSummaryResponse(Message):
    KIND = "response"
    API_KEY = 87
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("results",)
    SCHEMA = (
        ("Results", "results", "[]ReadStateSummaryResult", (0, 1)),
    )

    def __init__(self, results: list[ReadStateSummaryResult] = EMPTY) -> None:
        self.results = [] if results is EMPTY else results
