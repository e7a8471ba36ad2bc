"""DeleteTopicsRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class DeleteTopicState(Struct):
    __slots__ = ("name", "topic_id")
    SCHEMA = (
        ("Name", "name", "string", (6, 6), (6, 6), None, None, None),
        ("TopicId", "topic_id", "uuid", (6, 6)),
    )

    def __init__(self, name: str | None = None, topic_id: bytes = ZERO) -> None:
        self.name = name
        self.topic_id = topic_id


class DeleteTopicsRequest(Message):
    KIND = "request"
    API_KEY = 20
    VERSIONS = (1, 6)
    FLEXIBLE_FROM = 4
    __slots__ = ("topics", "topic_names", "timeout_ms")
    SCHEMA = (
        ("Topics", "topics", "[]DeleteTopicState", (6, 6)),
        ("TopicNames", "topic_names", "[]string", (1, 5), None, None, None, b"", True),
        ("TimeoutMs", "timeout_ms", "int32", (1, 6)),
    )

    def __init__(
        self,
        topics: list[DeleteTopicState] = EMPTY, topic_names: list[str] = EMPTY, timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.topic_names = [] if topic_names is EMPTY else topic_names
        self.timeout_ms = timeout_ms
