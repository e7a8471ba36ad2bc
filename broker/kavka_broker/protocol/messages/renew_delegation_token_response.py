"""RenewDelegationTokenResponse."""

from kavka_broker.protocol.message import Message


class RenewDelegationTokenResponse(Message):
    KIND = "response"
    API_KEY = 39
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 2)),
        ("ExpiryTimestampMs", "expiry_timestamp_ms", "int64", (1, 2)),
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 2)),
    )

    def __init__(self, error_code: int = 0, expiry_timestamp_ms: int = 0, throttle_time_ms: int = 0) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms
