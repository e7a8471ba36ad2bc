"""RenewDelegationTokenRequest: request, key 39, versions 1 to 2, flexible from 2.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class RenewDelegationTokenRequest(Message):
    NAME = "RenewDelegationTokenRequest"
    KIND = "request"
    API_KEY = 39
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    __match_args__ = ("hmac", "renew_period_ms")
    __slots__ = __match_args__
    SCHEMA = (
        ("Hmac", "hmac", "bytes", (1, 2), None, None, None, b"", False, None),
        ("RenewPeriodMs", "renew_period_ms", "int64", (1, 2), None, None, None, 0, False, None),
    )

    def __init__(self, hmac: bytes = b"", renew_period_ms: int = 0) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms
