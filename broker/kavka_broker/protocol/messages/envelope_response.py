"""EnvelopeResponse."""

from kavka_broker.protocol.message import Message


class EnvelopeResponse(Message):
    KIND = "response"
    API_KEY = 58
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("response_data", "error_code")
    SCHEMA = (
        ("ResponseData", "response_data", "bytes", (0, 0), (0, 0), None, None, None),
        ("ErrorCode", "error_code", "int16", (0, 0)),
    )

    def __init__(self, response_data: bytes | None = None, error_code: int = 0) -> None:
        self.response_data = response_data
        self.error_code = error_code
