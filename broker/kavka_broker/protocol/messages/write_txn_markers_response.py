"""WriteTxnMarkersResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class WritableTxnMarkerPartitionResult(Struct):
    __slots__ = ("partition_index", "error_code")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (1, 2)),
        ("ErrorCode", "error_code", "int16", (1, 2)),
    )

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class WritableTxnMarkerTopicResult(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (1, 2)),
        ("Partitions", "partitions", "[]WritableTxnMarkerPartitionResult", (1, 2)),
    )

    def __init__(self, name: str = "", partitions: list[WritableTxnMarkerPartitionResult] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class WritableTxnMarkerResult(Struct):
    __slots__ = ("producer_id", "topics")
    SCHEMA = (
        ("ProducerId", "producer_id", "int64", (1, 2)),
        ("Topics", "topics", "[]WritableTxnMarkerTopicResult", (1, 2)),
    )

    def __init__(self, producer_id: int = 0, topics: list[WritableTxnMarkerTopicResult] = EMPTY) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is EMPTY else topics


class WriteTxnMarkersResponse(Message):
    KIND = "response"
    API_KEY = 27
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
    __slots__ = ("markers",)
    SCHEMA = (
        ("Markers", "markers", "[]WritableTxnMarkerResult", (1, 2)),
    )

    def __init__(self, markers: list[WritableTxnMarkerResult] = EMPTY) -> None:
        self.markers = [] if markers is EMPTY else markers
