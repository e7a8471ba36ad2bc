"""ReadShareGroupStateResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class StateBatch(Struct):
    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    SCHEMA = (
        ("FirstOffset", "first_offset", "int64", (0, 0)),
        ("LastOffset", "last_offset", "int64", (0, 0)),
        ("DeliveryState", "delivery_state", "int8", (0, 0)),
        ("DeliveryCount", "delivery_count", "int16", (0, 0)),
    )

    def __init__(
        self,
        first_offset: int = 0, last_offset: int = 0, delivery_state: int = 0, delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count


class PartitionResult(Struct):
    __slots__ = ("partition", "error_code", "error_message", "state_epoch", "start_offset", "state_batches")
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0), None, None, None),
        ("StateEpoch", "state_epoch", "int32", (0, 0)),
        ("StartOffset", "start_offset", "int64", (0, 0)),
        ("StateBatches", "state_batches", "[]StateBatch", (0, 0)),
    )

    def __init__(
        self,
        partition: int = 0, error_code: int = 0, error_message: str | None = None, state_epoch: int = 0,
        start_offset: int = 0, state_batches: list[StateBatch] = EMPTY,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.state_batches = [] if state_batches is EMPTY else state_batches


class ReadStateResult(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("Partitions", "partitions", "[]PartitionResult", (0, 0)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionResult] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ReadShareGroupStateResponse(Message):
    KIND = "response"
    API_KEY = 84
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("results",)
    SCHEMA = (
        ("Results", "results", "[]ReadStateResult", (0, 0)),
    )

    def __init__(self, results: list[ReadStateResult] = EMPTY) -> None:
        self.results = [] if results is EMPTY else results
