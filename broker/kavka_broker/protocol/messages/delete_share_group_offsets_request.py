"""DeleteShareGroupOffsetsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DeleteShareGroupOffsetsRequestTopic(Struct):
    __slots__ = ("topic_name",)
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 0)),
    )

    def __init__(self, topic_name: str = "") -> None:
        self.topic_name = topic_name


class DeleteShareGroupOffsetsRequest(Message):
    KIND = "request"
    API_KEY = 92
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "topics")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0)),
        ("Topics", "topics", "[]DeleteShareGroupOffsetsRequestTopic", (0, 0)),
    )

    def __init__(self, group_id: str = "", topics: list[DeleteShareGroupOffsetsRequestTopic] = EMPTY) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
