"""DescribeAclsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AclDescription(Struct):
    __slots__ = ("principal", "host", "operation", "permission_type")
    SCHEMA = (
        ("Principal", "principal", "string", (1, 3)),
        ("Host", "host", "string", (1, 3)),
        ("Operation", "operation", "int8", (1, 3)),
        ("PermissionType", "permission_type", "int8", (1, 3)),
    )

    def __init__(self, principal: str = "", host: str = "", operation: int = 0, permission_type: int = 0) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DescribeAclsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls")
    SCHEMA = (
        ("ResourceType", "resource_type", "int8", (1, 3)),
        ("ResourceName", "resource_name", "string", (1, 3)),
        ("PatternType", "pattern_type", "int8", (1, 3), None, None, None, 3),
        ("Acls", "acls", "[]AclDescription", (1, 3)),
    )

    def __init__(
        self,
        resource_type: int = 0, resource_name: str = "", pattern_type: int = 3, acls: list[AclDescription] = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls = [] if acls is EMPTY else acls


class DescribeAclsResponse(Message):
    KIND = "response"
    API_KEY = 29
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 3)),
        ("ErrorCode", "error_code", "int16", (1, 3)),
        ("ErrorMessage", "error_message", "string", (1, 3), (1, 3)),
        ("Resources", "resources", "[]DescribeAclsResource", (1, 3)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "",
        resources: list[DescribeAclsResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = [] if resources is EMPTY else resources
