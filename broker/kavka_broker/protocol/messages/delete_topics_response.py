"""DeleteTopicsResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class DeletableTopicResult(Struct):
    __slots__ = ("name", "topic_id", "error_code", "error_message")
    SCHEMA = (
        ("Name", "name", "string", (1, 6), (6, 6)),
        ("TopicId", "topic_id", "uuid", (6, 6), None, None, None, b"", True),
        ("ErrorCode", "error_code", "int16", (1, 6)),
        ("ErrorMessage", "error_message", "string", (5, 6), (5, 6), None, None, None, True),
    )

    def __init__(
        self,
        name: str | None = "", topic_id: bytes = ZERO, error_code: int = 0, error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteTopicsResponse(Message):
    KIND = "response"
    API_KEY = 20
    VERSIONS = (1, 6)
    FLEXIBLE_FROM = 4
    __slots__ = ("throttle_time_ms", "responses")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 6), None, None, None, 0, True),
        ("Responses", "responses", "[]DeletableTopicResult", (1, 6)),
    )

    def __init__(self, throttle_time_ms: int = 0, responses: list[DeletableTopicResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY else responses
