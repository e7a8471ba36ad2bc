"""InitProducerIdResponse."""

from kavka_broker.protocol.message import Message


class InitProducerIdResponse(Message):
    KIND = "response"
    API_KEY = 22
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 2
    __slots__ = (
        "throttle_time_ms", "error_code", "producer_id", "producer_epoch", "ongoing_txn_producer_id",
        "ongoing_txn_producer_epoch",
    )
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 6), None, None, None, 0, True),
        ("ErrorCode", "error_code", "int16", (0, 6)),
        ("ProducerId", "producer_id", "int64", (0, 6), None, None, None, -1),
        ("ProducerEpoch", "producer_epoch", "int16", (0, 6)),
        ("OngoingTxnProducerId", "ongoing_txn_producer_id", "int64", (6, 6), None, None, None, -1),
        ("OngoingTxnProducerEpoch", "ongoing_txn_producer_epoch", "int16", (6, 6), None, None, None, -1),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, producer_id: int = -1, producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1, ongoing_txn_producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.ongoing_txn_producer_id = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch = ongoing_txn_producer_epoch
