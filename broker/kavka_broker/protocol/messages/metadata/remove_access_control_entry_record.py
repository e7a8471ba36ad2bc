"""RemoveAccessControlEntryRecord."""

from kavka_broker.protocol.message import ZERO, Message


class RemoveAccessControlEntryRecord(Message):
    KIND = "metadata"
    API_KEY = 19
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("id",)
    SCHEMA = (
        ("Id", "id", "uuid", (0, 0)),
    )

    def __init__(self, id: bytes = ZERO) -> None:
        self.id = id
