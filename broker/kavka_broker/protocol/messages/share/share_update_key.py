"""ShareUpdateKey."""

from kavka_broker.protocol.message import ZERO, Message


class ShareUpdateKey(Message):
    KIND = "coordinator-key"
    API_KEY = 1
    VERSIONS = (0, 0)
    __slots__ = ("group_id", "topic_id", "partition")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0)),
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("Partition", "partition", "int32", (0, 0)),
    )

    def __init__(self, group_id: str = "", topic_id: bytes = ZERO, partition: int = 0) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.partition = partition
