"""DescribeUserScramCredentialsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class CredentialInfo(Struct):
    __slots__ = ("mechanism", "iterations")
    SCHEMA = (
        ("Mechanism", "mechanism", "int8", (0, 0)),
        ("Iterations", "iterations", "int32", (0, 0)),
    )

    def __init__(self, mechanism: int = 0, iterations: int = 0) -> None:
        self.mechanism = mechanism
        self.iterations = iterations


class DescribeUserScramCredentialsResult(Struct):
    __slots__ = ("user", "error_code", "error_message", "credential_infos")
    SCHEMA = (
        ("User", "user", "string", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0)),
        ("CredentialInfos", "credential_infos", "[]CredentialInfo", (0, 0)),
    )

    def __init__(
        self,
        user: str = "", error_code: int = 0, error_message: str | None = "",
        credential_infos: list[CredentialInfo] = EMPTY,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos = [] if credential_infos is EMPTY else credential_infos


class DescribeUserScramCredentialsResponse(Message):
    KIND = "response"
    API_KEY = 50
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0)),
        ("Results", "results", "[]DescribeUserScramCredentialsResult", (0, 0)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is EMPTY else results
