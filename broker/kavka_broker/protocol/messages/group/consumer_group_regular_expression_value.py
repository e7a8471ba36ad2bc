"""ConsumerGroupRegularExpressionValue."""

from kavka_broker.protocol.message import EMPTY, Message


class ConsumerGroupRegularExpressionValue(Message):
    KIND = "coordinator-value"
    API_KEY = 16
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("topics", "version", "timestamp")
    SCHEMA = (
        ("Topics", "topics", "[]string", (0, 0)),
        ("Version", "version", "int64", (0, 0)),
        ("Timestamp", "timestamp", "int64", (0, 0)),
    )

    def __init__(self, topics: list[str] = EMPTY, version: int = 0, timestamp: int = 0) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.version = version
        self.timestamp = timestamp
