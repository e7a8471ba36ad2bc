"""DescribeTransactionsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TopicData(Struct):
    __slots__ = ("topic", "partitions")
    SCHEMA = (
        ("Topic", "topic", "string", (0, 0)),
        ("Partitions", "partitions", "[]int32", (0, 0)),
    )

    def __init__(self, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class TransactionState(Struct):
    __slots__ = (
        "error_code", "transactional_id", "transaction_state", "transaction_timeout_ms",
        "transaction_start_time_ms", "producer_id", "producer_epoch", "topics",
    )
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("TransactionalId", "transactional_id", "string", (0, 0)),
        ("TransactionState", "transaction_state", "string", (0, 0)),
        ("TransactionTimeoutMs", "transaction_timeout_ms", "int32", (0, 0)),
        ("TransactionStartTimeMs", "transaction_start_time_ms", "int64", (0, 0)),
        ("ProducerId", "producer_id", "int64", (0, 0)),
        ("ProducerEpoch", "producer_epoch", "int16", (0, 0)),
        ("Topics", "topics", "[]TopicData", (0, 0)),
    )

    def __init__(
        self,
        error_code: int = 0, transactional_id: str = "", transaction_state: str = "",
        transaction_timeout_ms: int = 0, transaction_start_time_ms: int = 0, producer_id: int = 0,
        producer_epoch: int = 0, topics: list[TopicData] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = [] if topics is EMPTY else topics


class DescribeTransactionsResponse(Message):
    KIND = "response"
    API_KEY = 65
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "transaction_states")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("TransactionStates", "transaction_states", "[]TransactionState", (0, 0)),
    )

    def __init__(self, throttle_time_ms: int = 0, transaction_states: list[TransactionState] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is EMPTY else transaction_states
