"""AddOffsetsToTxnResponse."""

from kavka_broker.protocol.message import Message


class AddOffsetsToTxnResponse(Message):
    KIND = "response"
    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "error_code")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 4)),
        ("ErrorCode", "error_code", "int16", (0, 4)),
    )

    def __init__(self, throttle_time_ms: int = 0, error_code: int = 0) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
