"""WriteTxnMarkersRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class WritableTxnMarkerTopic(Struct):
    __slots__ = ("name", "partition_indexes")
    SCHEMA = (
        ("Name", "name", "string", (1, 2)),
        ("PartitionIndexes", "partition_indexes", "[]int32", (1, 2)),
    )

    def __init__(self, name: str = "", partition_indexes: list[int] = EMPTY) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class WritableTxnMarker(Struct):
    __slots__ = (
        "producer_id", "producer_epoch", "transaction_result", "topics", "coordinator_epoch", "transaction_version",
    )
    SCHEMA = (
        ("ProducerId", "producer_id", "int64", (1, 2)),
        ("ProducerEpoch", "producer_epoch", "int16", (1, 2)),
        ("TransactionResult", "transaction_result", "bool", (1, 2)),
        ("Topics", "topics", "[]WritableTxnMarkerTopic", (1, 2)),
        ("CoordinatorEpoch", "coordinator_epoch", "int32", (1, 2)),
        ("TransactionVersion", "transaction_version", "int8", (2, 2), None, None, None, 0, True),
    )

    def __init__(
        self,
        producer_id: int = 0, producer_epoch: int = 0, transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = EMPTY, coordinator_epoch: int = 0, transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = [] if topics is EMPTY else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version


class WriteTxnMarkersRequest(Message):
    KIND = "request"
    API_KEY = 27
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
    __slots__ = ("markers",)
    SCHEMA = (
        ("Markers", "markers", "[]WritableTxnMarker", (1, 2)),
    )

    def __init__(self, markers: list[WritableTxnMarker] = EMPTY) -> None:
        self.markers = [] if markers is EMPTY else markers
