"""CreatePartitionsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class CreatePartitionsTopicResult(Struct):
    __slots__ = ("name", "error_code", "error_message")
    SCHEMA = (
        ("Name", "name", "string", (0, 3)),
        ("ErrorCode", "error_code", "int16", (0, 3)),
        ("ErrorMessage", "error_message", "string", (0, 3), (0, 3), None, None, None),
    )

    def __init__(self, name: str = "", error_code: int = 0, error_message: str | None = None) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message


class CreatePartitionsResponse(Message):
    KIND = "response"
    API_KEY = 37
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 3)),
        ("Results", "results", "[]CreatePartitionsTopicResult", (0, 3)),
    )

    def __init__(self, throttle_time_ms: int = 0, results: list[CreatePartitionsTopicResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
