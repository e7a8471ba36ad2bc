"""DeleteShareGroupOffsetsResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class DeleteShareGroupOffsetsResponseTopic(Struct):
    __slots__ = ("topic_name", "topic_id", "error_code", "error_message")
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 0)),
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0), None, None, None),
    )

    def __init__(
        self,
        topic_name: str = "", topic_id: bytes = ZERO, error_code: int = 0, error_message: str | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteShareGroupOffsetsResponse(Message):
    KIND = "response"
    API_KEY = 92
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0), None, None, None),
        ("Responses", "responses", "[]DeleteShareGroupOffsetsResponseTopic", (0, 0)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY else responses
