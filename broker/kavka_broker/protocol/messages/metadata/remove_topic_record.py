"""RemoveTopicRecord."""

from kavka_broker.protocol.message import ZERO, Message


class RemoveTopicRecord(Message):
    KIND = "metadata"
    API_KEY = 9
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("topic_id",)
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0)),
    )

    def __init__(self, topic_id: bytes = ZERO) -> None:
        self.topic_id = topic_id
