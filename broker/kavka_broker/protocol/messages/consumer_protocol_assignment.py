"""ConsumerProtocolAssignment."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TopicPartition(Struct):
    __slots__ = ("topic", "partitions")
    SCHEMA = (
        ("Topic", "topic", "string", (0, 3)),
        ("Partitions", "partitions", "[]int32", (0, 3)),
    )

    def __init__(self, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class ConsumerProtocolAssignment(Message):
    KIND = "data"
    VERSIONS = (0, 3)
    __slots__ = ("assigned_partitions", "user_data")
    SCHEMA = (
        ("AssignedPartitions", "assigned_partitions", "[]TopicPartition", (0, 3)),
        ("UserData", "user_data", "bytes", (0, 3), (0, 3), None, None, None),
    )

    def __init__(self, assigned_partitions: list[TopicPartition] = EMPTY, user_data: bytes | None = None) -> None:
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.user_data = user_data
