"""AlterPartitionReassignmentsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ReassignablePartition(Struct):
    __slots__ = ("partition_index", "replicas")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 1)),
        ("Replicas", "replicas", "[]int32", (0, 1), (0, 1), None, None, None),
    )

    def __init__(self, partition_index: int = 0, replicas: list[int] | None = None) -> None:
        self.partition_index = partition_index
        self.replicas = replicas


class ReassignableTopic(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 1)),
        ("Partitions", "partitions", "[]ReassignablePartition", (0, 1)),
    )

    def __init__(self, name: str = "", partitions: list[ReassignablePartition] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterPartitionReassignmentsRequest(Message):
    KIND = "request"
    API_KEY = 45
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics")
    SCHEMA = (
        ("TimeoutMs", "timeout_ms", "int32", (0, 1), None, None, None, 60000),
        ("AllowReplicationFactorChange", "allow_replication_factor_change", "bool", (1, 1), None, None, None, True),
        ("Topics", "topics", "[]ReassignableTopic", (0, 1)),
    )

    def __init__(
        self,
        timeout_ms: int = 60000, allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] = EMPTY,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is EMPTY else topics
