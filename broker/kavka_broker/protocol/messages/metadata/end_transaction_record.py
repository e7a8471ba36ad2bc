"""EndTransactionRecord."""

from kavka_broker.protocol.message import Message


class EndTransactionRecord(Message):
    KIND = "metadata"
    API_KEY = 24
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ()
