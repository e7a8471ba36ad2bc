"""NoOpRecord."""

from kavka_broker.protocol.message import Message


class NoOpRecord(Message):
    KIND = "metadata"
    API_KEY = 20
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ()
