"""FindCoordinatorResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class Coordinator(Struct):
    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message")
    SCHEMA = (
        ("Key", "key", "string", (4, 6)),
        ("NodeId", "node_id", "int32", (4, 6)),
        ("Host", "host", "string", (4, 6)),
        ("Port", "port", "int32", (4, 6)),
        ("ErrorCode", "error_code", "int16", (4, 6)),
        ("ErrorMessage", "error_message", "string", (4, 6), (4, 6), None, None, "", True),
    )

    def __init__(
        self,
        key: str = "", node_id: int = 0, host: str = "", port: int = 0, error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


class FindCoordinatorResponse(Message):
    KIND = "response"
    API_KEY = 10
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "node_id", "host", "port", "coordinators")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 6), None, None, None, 0, True),
        ("ErrorCode", "error_code", "int16", (0, 3)),
        ("ErrorMessage", "error_message", "string", (1, 3), (1, 3), None, None, "", True),
        ("NodeId", "node_id", "int32", (0, 3)),
        ("Host", "host", "string", (0, 3)),
        ("Port", "port", "int32", (0, 3)),
        ("Coordinators", "coordinators", "[]Coordinator", (4, 6)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "", node_id: int = 0,
        host: str = "", port: int = 0, coordinators: list[Coordinator] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is EMPTY else coordinators
