"""OffsetCommitKey."""

from kavka_broker.protocol.message import Message


class OffsetCommitKey(Message):
    KIND = "coordinator-key"
    API_KEY = 1
    VERSIONS = (0, 0)
    __slots__ = ("group", "topic", "partition")
    SCHEMA = (
        ("group", "group", "string", (0, 0)),
        ("topic", "topic", "string", (0, 0)),
        ("partition", "partition", "int32", (0, 0)),
    )

    def __init__(self, group: str = "", topic: str = "", partition: int = 0) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
