"""DeleteRecordsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DeleteRecordsPartition(Struct):
    __slots__ = ("partition_index", "offset")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 2)),
        ("Offset", "offset", "int64", (0, 2)),
    )

    def __init__(self, partition_index: int = 0, offset: int = 0) -> None:
        self.partition_index = partition_index
        self.offset = offset


class DeleteRecordsTopic(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 2)),
        ("Partitions", "partitions", "[]DeleteRecordsPartition", (0, 2)),
    )

    def __init__(self, name: str = "", partitions: list[DeleteRecordsPartition] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class DeleteRecordsRequest(Message):
    KIND = "request"
    API_KEY = 21
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("topics", "timeout_ms")
    SCHEMA = (
        ("Topics", "topics", "[]DeleteRecordsTopic", (0, 2)),
        ("TimeoutMs", "timeout_ms", "int32", (0, 2)),
    )

    def __init__(self, topics: list[DeleteRecordsTopic] = EMPTY, timeout_ms: int = 0) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
