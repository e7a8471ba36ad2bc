"""ConsumerProtocolSubscription."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TopicPartition(Struct):
    __slots__ = ("topic", "partitions")
    SCHEMA = (
        ("Topic", "topic", "string", (1, 3)),
        ("Partitions", "partitions", "[]int32", (1, 3)),
    )

    def __init__(self, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class ConsumerProtocolSubscription(Message):
    KIND = "data"
    VERSIONS = (0, 3)
    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")
    SCHEMA = (
        ("Topics", "topics", "[]string", (0, 3)),
        ("UserData", "user_data", "bytes", (0, 3), (0, 3), None, None, None),
        ("OwnedPartitions", "owned_partitions", "[]TopicPartition", (1, 3), None, None, None, b"", True),
        ("GenerationId", "generation_id", "int32", (2, 3), None, None, None, -1, True),
        ("RackId", "rack_id", "string", (3, 3), (3, 3), None, None, None, True),
    )

    def __init__(
        self,
        topics: list[str] = EMPTY, user_data: bytes | None = None, owned_partitions: list[TopicPartition] = EMPTY,
        generation_id: int = -1, rack_id: str | None = None,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is EMPTY else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id
