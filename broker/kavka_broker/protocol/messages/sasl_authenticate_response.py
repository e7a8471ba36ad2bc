"""SaslAuthenticateResponse."""

from kavka_broker.protocol.message import Message


class SaslAuthenticateResponse(Message):
    KIND = "response"
    API_KEY = 36
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 2)),
        ("ErrorMessage", "error_message", "string", (0, 2), (0, 2)),
        ("AuthBytes", "auth_bytes", "bytes", (0, 2)),
        ("SessionLifetimeMs", "session_lifetime_ms", "int64", (1, 2), None, None, None, 0, True),
    )

    def __init__(
        self,
        error_code: int = 0, error_message: str | None = "", auth_bytes: bytes = b"", session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms
