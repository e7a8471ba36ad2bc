"""ListOffsetsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ListOffsetsPartition(Struct):
    __slots__ = ("partition_index", "current_leader_epoch", "timestamp")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (1, 11)),
        ("CurrentLeaderEpoch", "current_leader_epoch", "int32", (4, 11), None, None, None, -1, True),
        ("Timestamp", "timestamp", "int64", (1, 11)),
    )

    def __init__(self, partition_index: int = 0, current_leader_epoch: int = -1, timestamp: int = 0) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp


class ListOffsetsTopic(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (1, 11)),
        ("Partitions", "partitions", "[]ListOffsetsPartition", (1, 11)),
    )

    def __init__(self, name: str = "", partitions: list[ListOffsetsPartition] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class ListOffsetsRequest(Message):
    KIND = "request"
    API_KEY = 2
    VERSIONS = (1, 11)
    FLEXIBLE_FROM = 6
    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms")
    SCHEMA = (
        ("ReplicaId", "replica_id", "int32", (1, 11)),
        ("IsolationLevel", "isolation_level", "int8", (2, 11)),
        ("Topics", "topics", "[]ListOffsetsTopic", (1, 11)),
        ("TimeoutMs", "timeout_ms", "int32", (10, 11), None, None, None, 0, True),
    )

    def __init__(
        self,
        replica_id: int = 0, isolation_level: int = 0, topics: list[ListOffsetsTopic] = EMPTY, timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
