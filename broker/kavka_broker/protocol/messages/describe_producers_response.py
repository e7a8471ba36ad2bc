"""DescribeProducersResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ProducerState(Struct):
    __slots__ = (
        "producer_id", "producer_epoch", "last_sequence", "last_timestamp", "coordinator_epoch",
        "current_txn_start_offset",
    )
    SCHEMA = (
        ("ProducerId", "producer_id", "int64", (0, 0)),
        ("ProducerEpoch", "producer_epoch", "int32", (0, 0)),
        ("LastSequence", "last_sequence", "int32", (0, 0), None, None, None, -1),
        ("LastTimestamp", "last_timestamp", "int64", (0, 0), None, None, None, -1),
        ("CoordinatorEpoch", "coordinator_epoch", "int32", (0, 0)),
        ("CurrentTxnStartOffset", "current_txn_start_offset", "int64", (0, 0), None, None, None, -1),
    )

    def __init__(
        self,
        producer_id: int = 0, producer_epoch: int = 0, last_sequence: int = -1, last_timestamp: int = -1,
        coordinator_epoch: int = 0, current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset


class PartitionResponse(Struct):
    __slots__ = ("partition_index", "error_code", "error_message", "active_producers")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0), None, None, None),
        ("ActiveProducers", "active_producers", "[]ProducerState", (0, 0)),
    )

    def __init__(
        self,
        partition_index: int = 0, error_code: int = 0, error_message: str | None = None,
        active_producers: list[ProducerState] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = [] if active_producers is EMPTY else active_producers


class TopicResponse(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Partitions", "partitions", "[]PartitionResponse", (0, 0)),
    )

    def __init__(self, name: str = "", partitions: list[PartitionResponse] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeProducersResponse(Message):
    KIND = "response"
    API_KEY = 61
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "topics")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("Topics", "topics", "[]TopicResponse", (0, 0)),
    )

    def __init__(self, throttle_time_ms: int = 0, topics: list[TopicResponse] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
