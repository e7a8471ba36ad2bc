"""DescribeGroupsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribedGroupMember(Struct):
    __slots__ = (
        "member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment",
    )
    SCHEMA = (
        ("MemberId", "member_id", "string", (0, 6)),
        ("GroupInstanceId", "group_instance_id", "string", (4, 6), (4, 6), None, None, None, True),
        ("ClientId", "client_id", "string", (0, 6)),
        ("ClientHost", "client_host", "string", (0, 6)),
        ("MemberMetadata", "member_metadata", "bytes", (0, 6)),
        ("MemberAssignment", "member_assignment", "bytes", (0, 6)),
    )

    def __init__(
        self,
        member_id: str = "", group_instance_id: str | None = None, client_id: str = "", client_host: str = "",
        member_metadata: bytes = b"", member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment


class DescribedGroup(Struct):
    __slots__ = (
        "error_code", "error_message", "group_id", "group_state", "protocol_type", "protocol_data", "members",
        "authorized_operations",
    )
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 6)),
        ("ErrorMessage", "error_message", "string", (6, 6), (6, 6), None, None, None),
        ("GroupId", "group_id", "string", (0, 6)),
        ("GroupState", "group_state", "string", (0, 6)),
        ("ProtocolType", "protocol_type", "string", (0, 6)),
        ("ProtocolData", "protocol_data", "string", (0, 6)),
        ("Members", "members", "[]DescribedGroupMember", (0, 6)),
        ("AuthorizedOperations", "authorized_operations", "int32", (3, 6), None, None, None, -2147483648),
    )

    def __init__(
        self,
        error_code: int = 0, error_message: str | None = None, group_id: str = "", group_state: str = "",
        protocol_type: str = "", protocol_data: str = "", members: list[DescribedGroupMember] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = [] if members is EMPTY else members
        self.authorized_operations = authorized_operations


class DescribeGroupsResponse(Message):
    KIND = "response"
    API_KEY = 15
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 5
    __slots__ = ("throttle_time_ms", "groups")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 6), None, None, None, 0, True),
        ("Groups", "groups", "[]DescribedGroup", (0, 6)),
    )

    def __init__(self, throttle_time_ms: int = 0, groups: list[DescribedGroup] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
