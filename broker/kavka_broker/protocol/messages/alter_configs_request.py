"""AlterConfigsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AlterableConfig(Struct):
    __slots__ = ("name", "value")
    SCHEMA = (
        ("Name", "name", "string", (0, 2)),
        ("Value", "value", "string", (0, 2), (0, 2)),
    )

    def __init__(self, name: str = "", value: str | None = "") -> None:
        self.name = name
        self.value = value


class AlterConfigsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "configs")
    SCHEMA = (
        ("ResourceType", "resource_type", "int8", (0, 2)),
        ("ResourceName", "resource_name", "string", (0, 2)),
        ("Configs", "configs", "[]AlterableConfig", (0, 2)),
    )

    def __init__(
        self,
        resource_type: int = 0, resource_name: str = "", configs: list[AlterableConfig] = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is EMPTY else configs


class AlterConfigsRequest(Message):
    KIND = "request"
    API_KEY = 33
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("resources", "validate_only")
    SCHEMA = (
        ("Resources", "resources", "[]AlterConfigsResource", (0, 2)),
        ("ValidateOnly", "validate_only", "bool", (0, 2)),
    )

    def __init__(self, resources: list[AlterConfigsResource] = EMPTY, validate_only: bool = False) -> None:
        self.resources = [] if resources is EMPTY else resources
        self.validate_only = validate_only
