"""TopicRecord."""

from kavka_broker.protocol.message import ZERO, Message


class TopicRecord(Message):
    KIND = "metadata"
    API_KEY = 2
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("name", "topic_id")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("TopicId", "topic_id", "uuid", (0, 0)),
    )

    def __init__(self, name: str = "", topic_id: bytes = ZERO) -> None:
        self.name = name
        self.topic_id = topic_id
