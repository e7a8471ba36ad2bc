"""TransactionLogValue."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class PartitionsSchema(Struct):
    __slots__ = ("topic", "partition_ids")
    SCHEMA = (
        ("Topic", "topic", "string", (0, 1)),
        ("PartitionIds", "partition_ids", "[]int32", (0, 1)),
    )

    def __init__(self, topic: str = "", partition_ids: list[int] = EMPTY) -> None:
        self.topic = topic
        self.partition_ids = [] if partition_ids is EMPTY else partition_ids


class TransactionLogValue(Message):
    KIND = "coordinator-value"
    API_KEY = 0
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    __slots__ = (
        "producer_id", "previous_producer_id", "next_producer_id", "producer_epoch", "next_producer_epoch",
        "transaction_timeout_ms", "transaction_status", "transaction_partitions",
        "transaction_last_update_timestamp_ms", "transaction_start_timestamp_ms", "client_transaction_version",
    )
    SCHEMA = (
        ("ProducerId", "producer_id", "int64", (0, 1)),
        ("PreviousProducerId", "previous_producer_id", "int64", (1, 1), None, (1, 1), 0, -1),
        ("NextProducerId", "next_producer_id", "int64", (1, 1), None, (1, 1), 1, -1),
        ("ProducerEpoch", "producer_epoch", "int16", (0, 1)),
        ("NextProducerEpoch", "next_producer_epoch", "int16", (1, 1), None, (1, 1), 3, -1),
        ("TransactionTimeoutMs", "transaction_timeout_ms", "int32", (0, 1)),
        ("TransactionStatus", "transaction_status", "int8", (0, 1)),
        ("TransactionPartitions", "transaction_partitions", "[]PartitionsSchema", (0, 1), (0, 1)),
        ("TransactionLastUpdateTimestampMs", "transaction_last_update_timestamp_ms", "int64", (0, 1)),
        ("TransactionStartTimestampMs", "transaction_start_timestamp_ms", "int64", (0, 1)),
        ("ClientTransactionVersion", "client_transaction_version", "int16", (1, 1), None, (1, 1), 2),
    )

    def __init__(
        self,
        producer_id: int = 0, previous_producer_id: int = -1, next_producer_id: int = -1, producer_epoch: int = 0,
        next_producer_epoch: int = -1, transaction_timeout_ms: int = 0, transaction_status: int = 0,
        transaction_partitions: list[PartitionsSchema] | None = EMPTY,
        transaction_last_update_timestamp_ms: int = 0, transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.next_producer_epoch = next_producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = [] if transaction_partitions is EMPTY else transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version
