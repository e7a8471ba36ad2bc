"""ClearElrRecord."""

from kavka_broker.protocol.message import Message


class ClearElrRecord(Message):
    KIND = "metadata"
    API_KEY = 28
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("topic_name",)
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 0)),
    )

    def __init__(self, topic_name: str = "") -> None:
        self.topic_name = topic_name
