"""ClearElrRecord: metadata, key 28, version 0, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class ClearElrRecord(Message):
    NAME = "ClearElrRecord"
    KIND = "metadata"
    API_KEY = 28
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __match_args__ = ("topic_name",)
    __slots__ = __match_args__
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 0)),
    )

    def __init__(self, topic_name: str = "") -> None:
        self.topic_name = topic_name
