"""AbortTransactionRecord."""

from kavka_broker.protocol.message import Message


class AbortTransactionRecord(Message):
    KIND = "metadata"
    API_KEY = 25
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("reason",)
    SCHEMA = (
        ("Reason", "reason", "string", (0, 0), (0, 0), (0, 0), 0, None),
    )

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason
