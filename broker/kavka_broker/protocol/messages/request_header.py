"""RequestHeader."""

from kavka_broker.protocol.message import Message


class RequestHeader(Message):
    KIND = "header"
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("request_api_key", "request_api_version", "correlation_id", "client_id")
    SCHEMA = (
        ("RequestApiKey", "request_api_key", "int16", (1, 2)),
        ("RequestApiVersion", "request_api_version", "int16", (1, 2)),
        ("CorrelationId", "correlation_id", "int32", (1, 2)),
        ("ClientId", "client_id", "string", (1, 2), (1, 2), None, None, "", False, (32767, 32767)),
    )

    def __init__(
        self,
        request_api_key: int = 0, request_api_version: int = 0, correlation_id: int = 0, client_id: str | None = "",
    ) -> None:
        self.request_api_key = request_api_key
        self.request_api_version = request_api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
