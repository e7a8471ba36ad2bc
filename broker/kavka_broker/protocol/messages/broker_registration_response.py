"""BrokerRegistrationResponse."""

from kavka_broker.protocol.message import Message


class BrokerRegistrationResponse(Message):
    KIND = "response"
    API_KEY = 62
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "broker_epoch")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 4)),
        ("ErrorCode", "error_code", "int16", (0, 4)),
        ("BrokerEpoch", "broker_epoch", "int64", (0, 4), None, None, None, -1),
    )

    def __init__(self, throttle_time_ms: int = 0, error_code: int = 0, broker_epoch: int = -1) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.broker_epoch = broker_epoch
