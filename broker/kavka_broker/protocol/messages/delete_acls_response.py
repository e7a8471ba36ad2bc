"""DeleteAclsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DeleteAclsMatchingAcl(Struct):
    __slots__ = (
        "error_code", "error_message", "resource_type", "resource_name", "pattern_type", "principal", "host",
        "operation", "permission_type",
    )
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 3)),
        ("ErrorMessage", "error_message", "string", (1, 3), (1, 3)),
        ("ResourceType", "resource_type", "int8", (1, 3)),
        ("ResourceName", "resource_name", "string", (1, 3)),
        ("PatternType", "pattern_type", "int8", (1, 3), None, None, None, 3),
        ("Principal", "principal", "string", (1, 3)),
        ("Host", "host", "string", (1, 3)),
        ("Operation", "operation", "int8", (1, 3)),
        ("PermissionType", "permission_type", "int8", (1, 3)),
    )

    def __init__(
        self,
        error_code: int = 0, error_message: str | None = "", resource_type: int = 0, resource_name: str = "",
        pattern_type: int = 3, principal: str = "", host: str = "", operation: int = 0, permission_type: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsFilterResult(Struct):
    __slots__ = ("error_code", "error_message", "matching_acls")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 3)),
        ("ErrorMessage", "error_message", "string", (1, 3), (1, 3)),
        ("MatchingAcls", "matching_acls", "[]DeleteAclsMatchingAcl", (1, 3)),
    )

    def __init__(
        self,
        error_code: int = 0, error_message: str | None = "", matching_acls: list[DeleteAclsMatchingAcl] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls = [] if matching_acls is EMPTY else matching_acls


class DeleteAclsResponse(Message):
    KIND = "response"
    API_KEY = 31
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "filter_results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 3)),
        ("FilterResults", "filter_results", "[]DeleteAclsFilterResult", (1, 3)),
    )

    def __init__(self, throttle_time_ms: int = 0, filter_results: list[DeleteAclsFilterResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = [] if filter_results is EMPTY else filter_results
