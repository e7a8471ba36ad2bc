"""DescribeAclsRequest."""

from kavka_broker.protocol.message import Message


class DescribeAclsRequest(Message):
    KIND = "request"
    API_KEY = 29
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __slots__ = (
        "resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter",
        "operation", "permission_type",
    )
    SCHEMA = (
        ("ResourceTypeFilter", "resource_type_filter", "int8", (1, 3)),
        ("ResourceNameFilter", "resource_name_filter", "string", (1, 3), (1, 3)),
        ("PatternTypeFilter", "pattern_type_filter", "int8", (1, 3), None, None, None, 3),
        ("PrincipalFilter", "principal_filter", "string", (1, 3), (1, 3)),
        ("HostFilter", "host_filter", "string", (1, 3), (1, 3)),
        ("Operation", "operation", "int8", (1, 3)),
        ("PermissionType", "permission_type", "int8", (1, 3)),
    )

    def __init__(
        self,
        resource_type_filter: int = 0, resource_name_filter: str | None = "", pattern_type_filter: int = 3,
        principal_filter: str | None = "", host_filter: str | None = "", operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type
