"""UnregisterBrokerResponse."""

from kavka_broker.protocol.message import Message


class UnregisterBrokerResponse(Message):
    KIND = "response"
    API_KEY = 64
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0)),
    )

    def __init__(self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
