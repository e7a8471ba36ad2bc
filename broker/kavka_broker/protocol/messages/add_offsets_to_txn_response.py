"""AddOffsetsToTxnResponse: response, key 25, versions 0 to 4, flexible from 3.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class AddOffsetsToTxnResponse(Message):
    NAME = "AddOffsetsToTxnResponse"
    KIND = "response"
    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    __match_args__ = ("throttle_time_ms", "error_code")
    __slots__ = __match_args__
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 4), None, None, None, 0, False, None),
        ("ErrorCode", "error_code", "int16", (0, 4), None, None, None, 0, False, None),
    )

    def __init__(self, throttle_time_ms: int = 0, error_code: int = 0) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
