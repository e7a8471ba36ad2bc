"""EndTxnResponse."""

from kavka_broker.protocol.message import Message


class EndTxnResponse(Message):
    KIND = "response"
    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 5)),
        ("ErrorCode", "error_code", "int16", (0, 5)),
        ("ProducerId", "producer_id", "int64", (5, 5), None, None, None, -1, True),
        ("ProducerEpoch", "producer_epoch", "int16", (5, 5), None, None, None, -1, True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, producer_id: int = -1, producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
