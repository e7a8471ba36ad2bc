"""ControlRecordTypeSchema: data, version 0, never flexible.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class ControlRecordTypeSchema(Message):
    NAME = "ControlRecordTypeSchema"
    KIND = "data"
    VERSIONS = (0, 0)
    __match_args__ = ("type",)
    __slots__ = __match_args__
    SCHEMA = (
        ("Type", "type", "int16", (0, 0)),
    )

    def __init__(self, type: int = 0) -> None:
        self.type = type
