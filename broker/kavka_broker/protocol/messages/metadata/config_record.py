"""ConfigRecord."""

from kavka_broker.protocol.message import Message


class ConfigRecord(Message):
    KIND = "metadata"
    API_KEY = 4
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("resource_type", "resource_name", "name", "value")
    SCHEMA = (
        ("ResourceType", "resource_type", "int8", (0, 0)),
        ("ResourceName", "resource_name", "string", (0, 0)),
        ("Name", "name", "string", (0, 0)),
        ("Value", "value", "string", (0, 0), (0, 0)),
    )

    def __init__(
        self,
        resource_type: int = 0, resource_name: str = "", name: str = "", value: str | None = "",
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.name = name
        self.value = value
