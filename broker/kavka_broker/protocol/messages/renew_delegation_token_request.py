"""RenewDelegationTokenRequest."""

from kavka_broker.protocol.message import Message


class RenewDelegationTokenRequest(Message):
    KIND = "request"
    API_KEY = 39
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("hmac", "renew_period_ms")
    SCHEMA = (
        ("Hmac", "hmac", "bytes", (1, 2)),
        ("RenewPeriodMs", "renew_period_ms", "int64", (1, 2)),
    )

    def __init__(self, hmac: bytes = b"", renew_period_ms: int = 0) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms
