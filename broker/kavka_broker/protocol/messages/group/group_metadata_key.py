"""GroupMetadataKey."""

from kavka_broker.protocol.message import Message


class GroupMetadataKey(Message):
    KIND = "coordinator-key"
    API_KEY = 2
    VERSIONS = (0, 0)
    __slots__ = ("group",)
    SCHEMA = (
        ("group", "group", "string", (0, 0)),
    )

    def __init__(self, group: str = "") -> None:
        self.group = group
