"""ResponseHeader."""

from kavka_broker.protocol.message import Message


class ResponseHeader(Message):
    KIND = "header"
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("correlation_id",)
    SCHEMA = (
        ("CorrelationId", "correlation_id", "int32", (0, 1)),
    )

    def __init__(self, correlation_id: int = 0) -> None:
        self.correlation_id = correlation_id
