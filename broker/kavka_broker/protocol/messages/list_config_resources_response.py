"""ListConfigResourcesResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ConfigResource(Struct):
    __slots__ = ("resource_name", "resource_type")
    SCHEMA = (
        ("ResourceName", "resource_name", "string", (0, 1)),
        ("ResourceType", "resource_type", "int8", (1, 1), None, None, None, 16, True),
    )

    def __init__(self, resource_name: str = "", resource_type: int = 16) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type


class ListConfigResourcesResponse(Message):
    KIND = "response"
    API_KEY = 74
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "config_resources")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 1)),
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("ConfigResources", "config_resources", "[]ConfigResource", (0, 1)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, config_resources: list[ConfigResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = [] if config_resources is EMPTY else config_resources
