"""AllocateProducerIdsResponse."""

from kavka_broker.protocol.message import Message


class AllocateProducerIdsResponse(Message):
    KIND = "response"
    API_KEY = 67
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "producer_id_start", "producer_id_len")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ProducerIdStart", "producer_id_start", "int64", (0, 0)),
        ("ProducerIdLen", "producer_id_len", "int32", (0, 0)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, producer_id_start: int = 0, producer_id_len: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id_start = producer_id_start
        self.producer_id_len = producer_id_len
