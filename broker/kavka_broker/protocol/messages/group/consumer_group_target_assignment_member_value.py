"""ConsumerGroupTargetAssignmentMemberValue."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class TopicPartition(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("Partitions", "partitions", "[]int32", (0, 0)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[int] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ConsumerGroupTargetAssignmentMemberValue(Message):
    KIND = "coordinator-value"
    API_KEY = 7
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("topic_partitions",)
    SCHEMA = (
        ("TopicPartitions", "topic_partitions", "[]TopicPartition", (0, 0)),
    )

    def __init__(self, topic_partitions: list[TopicPartition] = EMPTY) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
