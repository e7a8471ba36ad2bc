"""ExpireDelegationTokenRequest."""

from kavka_broker.protocol.message import Message


class ExpireDelegationTokenRequest(Message):
    KIND = "request"
    API_KEY = 40
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("hmac", "expiry_time_period_ms")
    SCHEMA = (
        ("Hmac", "hmac", "bytes", (1, 2)),
        ("ExpiryTimePeriodMs", "expiry_time_period_ms", "int64", (1, 2)),
    )

    def __init__(self, hmac: bytes = b"", expiry_time_period_ms: int = 0) -> None:
        self.hmac = hmac
        self.expiry_time_period_ms = expiry_time_period_ms
