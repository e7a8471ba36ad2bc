"""DeleteGroupsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DeletableGroupResult(Struct):
    __slots__ = ("group_id", "error_code", "error_message")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 3)),
        ("ErrorCode", "error_code", "int16", (0, 3)),
        ("ErrorMessage", "error_message", "string", (3, 3), (3, 3), None, None, None, True),
    )

    def __init__(self, group_id: str = "", error_code: int = 0, error_message: str | None = None) -> None:
        self.group_id = group_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteGroupsResponse(Message):
    KIND = "response"
    API_KEY = 42
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 3)),
        ("Results", "results", "[]DeletableGroupResult", (0, 3)),
    )

    def __init__(self, throttle_time_ms: int = 0, results: list[DeletableGroupResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
