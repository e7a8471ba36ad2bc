"""ElectLeadersRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TopicPartitions(Struct):
    __slots__ = ("topic", "partitions")
    SCHEMA = (
        ("Topic", "topic", "string", (0, 2)),
        ("Partitions", "partitions", "[]int32", (0, 2)),
    )

    def __init__(self, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class ElectLeadersRequest(Message):
    KIND = "request"
    API_KEY = 43
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("election_type", "topic_partitions", "timeout_ms")
    SCHEMA = (
        ("ElectionType", "election_type", "int8", (1, 2)),
        ("TopicPartitions", "topic_partitions", "[]TopicPartitions", (0, 2), (0, 2)),
        ("TimeoutMs", "timeout_ms", "int32", (0, 2), None, None, None, 60000),
    )

    def __init__(
        self,
        election_type: int = 0, topic_partitions: list[TopicPartitions] | None = EMPTY, timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
        self.timeout_ms = timeout_ms
