"""AccessControlEntryRecord."""

from kavka_broker.protocol.message import ZERO, Message


class AccessControlEntryRecord(Message):
    KIND = "metadata"
    API_KEY = 18
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "id", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type",
    )
    SCHEMA = (
        ("Id", "id", "uuid", (0, 0)),
        ("ResourceType", "resource_type", "int8", (0, 0)),
        ("ResourceName", "resource_name", "string", (0, 0)),
        ("PatternType", "pattern_type", "int8", (0, 0)),
        ("Principal", "principal", "string", (0, 0)),
        ("Host", "host", "string", (0, 0)),
        ("Operation", "operation", "int8", (0, 0)),
        ("PermissionType", "permission_type", "int8", (0, 0)),
    )

    def __init__(
        self,
        id: bytes = ZERO, resource_type: int = 0, resource_name: str = "", pattern_type: int = 0,
        principal: str = "", host: str = "", operation: int = 0, permission_type: int = 0,
    ) -> None:
        self.id = id
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
