"""AlterConfigsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AlterConfigsResourceResponse(Struct):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 2)),
        ("ErrorMessage", "error_message", "string", (0, 2), (0, 2)),
        ("ResourceType", "resource_type", "int8", (0, 2)),
        ("ResourceName", "resource_name", "string", (0, 2)),
    )

    def __init__(
        self,
        error_code: int = 0, error_message: str | None = "", resource_type: int = 0, resource_name: str = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name


class AlterConfigsResponse(Message):
    KIND = "response"
    API_KEY = 33
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "responses")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 2)),
        ("Responses", "responses", "[]AlterConfigsResourceResponse", (0, 2)),
    )

    def __init__(self, throttle_time_ms: int = 0, responses: list[AlterConfigsResourceResponse] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY else responses
