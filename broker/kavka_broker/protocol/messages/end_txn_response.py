"""EndTxnResponse: response, key 26, versions 0 to 5, flexible from 3.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class EndTxnResponse(Message):
    NAME = "EndTxnResponse"
    KIND = "response"
    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __match_args__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")
    __slots__ = __match_args__
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 5), None, None, None, 0, False, None),
        ("ErrorCode", "error_code", "int16", (0, 5), None, None, None, 0, False, None),
        ("ProducerId", "producer_id", "int64", (5, 5), None, None, None, -1, True, None),
        ("ProducerEpoch", "producer_epoch", "int16", (5, 5), None, None, None, -1, True, None),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
