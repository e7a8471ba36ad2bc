"""RenewDelegationTokenResponse: response, key 39, versions 1 to 2, flexible from 2.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class RenewDelegationTokenResponse(Message):
    NAME = "RenewDelegationTokenResponse"
    KIND = "response"
    API_KEY = 39
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    __match_args__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")
    __slots__ = __match_args__
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 2), None, None, None, 0, False, None),
        (
            "ExpiryTimestampMs", "expiry_timestamp_ms", "int64",
            (1, 2), None, None, None, 0, False, None,
        ),
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 2), None, None, None, 0, False, None),
    )

    def __init__(
        self,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms
