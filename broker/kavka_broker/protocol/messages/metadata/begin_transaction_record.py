"""BeginTransactionRecord."""

from kavka_broker.protocol.message import Message


class BeginTransactionRecord(Message):
    KIND = "metadata"
    API_KEY = 23
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("name",)
    SCHEMA = (
        ("Name", "name", "string", (0, 0), (0, 0), (0, 0), 0, None),
    )

    def __init__(self, name: str | None = None) -> None:
        self.name = name
