"""AlterUserScramCredentialsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AlterUserScramCredentialsResult(Struct):
    __slots__ = ("user", "error_code", "error_message")
    SCHEMA = (
        ("User", "user", "string", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0)),
    )

    def __init__(self, user: str = "", error_code: int = 0, error_message: str | None = "") -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message


class AlterUserScramCredentialsResponse(Message):
    KIND = "response"
    API_KEY = 51
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("Results", "results", "[]AlterUserScramCredentialsResult", (0, 0)),
    )

    def __init__(self, throttle_time_ms: int = 0, results: list[AlterUserScramCredentialsResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
