"""ListPartitionReassignmentsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ListPartitionReassignmentsTopics(Struct):
    __slots__ = ("name", "partition_indexes")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("PartitionIndexes", "partition_indexes", "[]int32", (0, 0)),
    )

    def __init__(self, name: str = "", partition_indexes: list[int] = EMPTY) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class ListPartitionReassignmentsRequest(Message):
    KIND = "request"
    API_KEY = 46
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("timeout_ms", "topics")
    SCHEMA = (
        ("TimeoutMs", "timeout_ms", "int32", (0, 0), None, None, None, 60000),
        ("Topics", "topics", "[]ListPartitionReassignmentsTopics", (0, 0), (0, 0), None, None, None),
    )

    def __init__(
        self,
        timeout_ms: int = 60000, topics: list[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics
