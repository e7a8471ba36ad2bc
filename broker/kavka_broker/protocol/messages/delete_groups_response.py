"""DeleteGroupsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DeletableGroupResult(Struct):
    __slots__ = ("group_id", "error_code")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 2)),
        ("ErrorCode", "error_code", "int16", (0, 2)),
    )

    def __init__(self, group_id: str = "", error_code: int = 0) -> None:
        self.group_id = group_id
        self.error_code = error_code


class DeleteGroupsResponse(Message):
    KIND = "response"
    API_KEY = 42
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 2)),
        ("Results", "results", "[]DeletableGroupResult", (0, 2)),
    )

    def __init__(self, throttle_time_ms: int = 0, results: list[DeletableGroupResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
