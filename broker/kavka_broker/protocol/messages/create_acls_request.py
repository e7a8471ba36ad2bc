"""CreateAclsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AclCreation(Struct):
    __slots__ = (
        "resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation",
        "permission_type",
    )
    SCHEMA = (
        ("ResourceType", "resource_type", "int8", (1, 3)),
        ("ResourceName", "resource_name", "string", (1, 3)),
        ("ResourcePatternType", "resource_pattern_type", "int8", (1, 3), None, None, None, 3),
        ("Principal", "principal", "string", (1, 3)),
        ("Host", "host", "string", (1, 3)),
        ("Operation", "operation", "int8", (1, 3)),
        ("PermissionType", "permission_type", "int8", (1, 3)),
    )

    def __init__(
        self,
        resource_type: int = 0, resource_name: str = "", resource_pattern_type: int = 3, principal: str = "",
        host: str = "", operation: int = 0, permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class CreateAclsRequest(Message):
    KIND = "request"
    API_KEY = 30
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("creations",)
    SCHEMA = (
        ("Creations", "creations", "[]AclCreation", (1, 3)),
    )

    def __init__(self, creations: list[AclCreation] = EMPTY) -> None:
        self.creations = [] if creations is EMPTY else creations
