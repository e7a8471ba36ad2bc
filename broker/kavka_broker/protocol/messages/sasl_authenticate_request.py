"""SaslAuthenticateRequest."""

from kavka_broker.protocol.message import Message


class SaslAuthenticateRequest(Message):
    KIND = "request"
    API_KEY = 36
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("auth_bytes",)
    SCHEMA = (
        ("AuthBytes", "auth_bytes", "bytes", (0, 2)),
    )

    def __init__(self, auth_bytes: bytes = b"") -> None:
        self.auth_bytes = auth_bytes
