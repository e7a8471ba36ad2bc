"""UpdateFeaturesResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class UpdatableFeatureResult(Struct):
    __slots__ = ("feature", "error_code", "error_message")
    SCHEMA = (
        ("Feature", "feature", "string", (0, 2)),
        ("ErrorCode", "error_code", "int16", (0, 2)),
        ("ErrorMessage", "error_message", "string", (0, 2), (0, 2)),
    )

    def __init__(self, feature: str = "", error_code: int = 0, error_message: str | None = "") -> None:
        self.feature = feature
        self.error_code = error_code
        self.error_message = error_message


class UpdateFeaturesResponse(Message):
    KIND = "response"
    API_KEY = 57
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 2)),
        ("ErrorCode", "error_code", "int16", (0, 2)),
        ("ErrorMessage", "error_message", "string", (0, 2), (0, 2)),
        ("Results", "results", "[]UpdatableFeatureResult", (0, 1), None, None, None, b"", True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "",
        results: list[UpdatableFeatureResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is EMPTY else results
