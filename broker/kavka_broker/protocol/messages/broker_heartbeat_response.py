"""BrokerHeartbeatResponse."""

from kavka_broker.protocol.message import Message


class BrokerHeartbeatResponse(Message):
    KIND = "response"
    API_KEY = 63
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "is_caught_up", "is_fenced", "should_shut_down")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 2)),
        ("ErrorCode", "error_code", "int16", (0, 2)),
        ("IsCaughtUp", "is_caught_up", "bool", (0, 2)),
        ("IsFenced", "is_fenced", "bool", (0, 2), None, None, None, True),
        ("ShouldShutDown", "should_shut_down", "bool", (0, 2)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, is_caught_up: bool = False, is_fenced: bool = True,
        should_shut_down: bool = False,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.is_caught_up = is_caught_up
        self.is_fenced = is_fenced
        self.should_shut_down = should_shut_down
