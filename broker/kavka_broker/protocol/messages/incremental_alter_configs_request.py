"""IncrementalAlterConfigsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AlterableConfig(Struct):
    __slots__ = ("name", "config_operation", "value")
    SCHEMA = (
        ("Name", "name", "string", (0, 1)),
        ("ConfigOperation", "config_operation", "int8", (0, 1)),
        ("Value", "value", "string", (0, 1), (0, 1)),
    )

    def __init__(self, name: str = "", config_operation: int = 0, value: str | None = "") -> None:
        self.name = name
        self.config_operation = config_operation
        self.value = value


class AlterConfigsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "configs")
    SCHEMA = (
        ("ResourceType", "resource_type", "int8", (0, 1)),
        ("ResourceName", "resource_name", "string", (0, 1)),
        ("Configs", "configs", "[]AlterableConfig", (0, 1)),
    )

    def __init__(
        self,
        resource_type: int = 0, resource_name: str = "", configs: list[AlterableConfig] = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is EMPTY else configs


class IncrementalAlterConfigsRequest(Message):
    KIND = "request"
    API_KEY = 44
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("resources", "validate_only")
    SCHEMA = (
        ("Resources", "resources", "[]AlterConfigsResource", (0, 1)),
        ("ValidateOnly", "validate_only", "bool", (0, 1)),
    )

    def __init__(self, resources: list[AlterConfigsResource] = EMPTY, validate_only: bool = False) -> None:
        self.resources = [] if resources is EMPTY else resources
        self.validate_only = validate_only
