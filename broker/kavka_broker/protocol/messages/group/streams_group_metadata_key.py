"""StreamsGroupMetadataKey: coordinator-key, key 17, version 0, never flexible.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class StreamsGroupMetadataKey(Message):
    NAME = "StreamsGroupMetadataKey"
    KIND = "coordinator-key"
    API_KEY = 17
    VERSIONS = (0, 0)
    __match_args__ = ("group_id",)
    __slots__ = __match_args__
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0)),
    )

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id
