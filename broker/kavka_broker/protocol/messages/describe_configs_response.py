"""DescribeConfigsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribeConfigsSynonym(Struct):
    __slots__ = ("name", "value", "source")
    SCHEMA = (
        ("Name", "name", "string", (1, 4)),
        ("Value", "value", "string", (1, 4), (1, 4)),
        ("Source", "source", "int8", (1, 4)),
    )

    def __init__(self, name: str = "", value: str | None = "", source: int = 0) -> None:
        self.name = name
        self.value = value
        self.source = source


class DescribeConfigsResourceResult(Struct):
    __slots__ = (
        "name", "value", "read_only", "config_source", "is_sensitive", "synonyms", "config_type", "documentation",
    )
    SCHEMA = (
        ("Name", "name", "string", (1, 4)),
        ("Value", "value", "string", (1, 4), (1, 4)),
        ("ReadOnly", "read_only", "bool", (1, 4)),
        ("ConfigSource", "config_source", "int8", (1, 4), None, None, None, -1, True),
        ("IsSensitive", "is_sensitive", "bool", (1, 4)),
        ("Synonyms", "synonyms", "[]DescribeConfigsSynonym", (1, 4), None, None, None, b"", True),
        ("ConfigType", "config_type", "int8", (3, 4), None, None, None, 0, True),
        ("Documentation", "documentation", "string", (3, 4), (1, 4), None, None, "", True),
    )

    def __init__(
        self,
        name: str = "", value: str | None = "", read_only: bool = False, config_source: int = -1,
        is_sensitive: bool = False, synonyms: list[DescribeConfigsSynonym] = EMPTY, config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = [] if synonyms is EMPTY else synonyms
        self.config_type = config_type
        self.documentation = documentation


class DescribeConfigsResult(Struct):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 4)),
        ("ErrorMessage", "error_message", "string", (1, 4), (1, 4)),
        ("ResourceType", "resource_type", "int8", (1, 4)),
        ("ResourceName", "resource_name", "string", (1, 4)),
        ("Configs", "configs", "[]DescribeConfigsResourceResult", (1, 4)),
    )

    def __init__(
        self,
        error_code: int = 0, error_message: str | None = "", resource_type: int = 0, resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is EMPTY else configs


class DescribeConfigsResponse(Message):
    KIND = "response"
    API_KEY = 32
    VERSIONS = (1, 4)
    FLEXIBLE_FROM = 4
    __slots__ = ("throttle_time_ms", "results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 4)),
        ("Results", "results", "[]DescribeConfigsResult", (1, 4)),
    )

    def __init__(self, throttle_time_ms: int = 0, results: list[DescribeConfigsResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
