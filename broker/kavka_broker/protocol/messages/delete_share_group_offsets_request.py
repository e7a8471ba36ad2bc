"""DeleteShareGroupOffsetsRequest: request, key 92, version 0, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DeleteShareGroupOffsetsRequestTopic(Struct):
    __match_args__ = ("topic_name",)
    __slots__ = __match_args__
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 0), None, None, None, "", False, None),
    )

    def __init__(self, topic_name: str = "") -> None:
        self.topic_name = topic_name


class DeleteShareGroupOffsetsRequest(Message):
    NAME = "DeleteShareGroupOffsetsRequest"
    KIND = "request"
    API_KEY = 92
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __match_args__ = ("group_id", "topics")
    __slots__ = __match_args__
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0), None, None, None, "", False, None),
        (
            "Topics", "topics", "[]DeleteShareGroupOffsetsRequestTopic",
            (0, 0), None, None, None, b"", False, None,
        ),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
