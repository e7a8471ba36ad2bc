"""EnvelopeRequest."""

from kavka_broker.protocol.message import Message


class EnvelopeRequest(Message):
    KIND = "request"
    API_KEY = 58
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("request_data", "request_principal", "client_host_address")
    SCHEMA = (
        ("RequestData", "request_data", "bytes", (0, 0)),
        ("RequestPrincipal", "request_principal", "bytes", (0, 0), (0, 0)),
        ("ClientHostAddress", "client_host_address", "bytes", (0, 0)),
    )

    def __init__(
        self,
        request_data: bytes = b"", request_principal: bytes | None = b"", client_host_address: bytes = b"",
    ) -> None:
        self.request_data = request_data
        self.request_principal = request_principal
        self.client_host_address = client_host_address
