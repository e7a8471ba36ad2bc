"""SyncGroupResponse."""

from kavka_broker.protocol.message import Message


class SyncGroupResponse(Message):
    KIND = "response"
    API_KEY = 14
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 4
    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 5), None, None, None, 0, True),
        ("ErrorCode", "error_code", "int16", (0, 5)),
        ("ProtocolType", "protocol_type", "string", (5, 5), (5, 5), None, None, None, True),
        ("ProtocolName", "protocol_name", "string", (5, 5), (5, 5), None, None, None, True),
        ("Assignment", "assignment", "bytes", (0, 5)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, protocol_type: str | None = None,
        protocol_name: str | None = None, assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
