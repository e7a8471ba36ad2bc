"""CreateAclsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AclCreationResult(Struct):
    __slots__ = ("error_code", "error_message")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 3)),
        ("ErrorMessage", "error_message", "string", (1, 3), (1, 3)),
    )

    def __init__(self, error_code: int = 0, error_message: str | None = "") -> None:
        self.error_code = error_code
        self.error_message = error_message


class CreateAclsResponse(Message):
    KIND = "response"
    API_KEY = 30
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 3)),
        ("Results", "results", "[]AclCreationResult", (1, 3)),
    )

    def __init__(self, throttle_time_ms: int = 0, results: list[AclCreationResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
