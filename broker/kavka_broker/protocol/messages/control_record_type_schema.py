"""ControlRecordTypeSchema."""

from kavka_broker.protocol.message import Message


class ControlRecordTypeSchema(Message):
    KIND = "data"
    VERSIONS = (0, 0)
    __slots__ = ("type",)
    SCHEMA = (
        ("Type", "type", "int16", (0, 0)),
    )

    def __init__(self, type: int = 0) -> None:
        self.type = type
