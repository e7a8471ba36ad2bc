"""ListGroupsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ListedGroup(Struct):
    __slots__ = ("group_id", "protocol_type", "group_state", "group_type")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 5)),
        ("ProtocolType", "protocol_type", "string", (0, 5)),
        ("GroupState", "group_state", "string", (4, 5), None, None, None, "", True),
        ("GroupType", "group_type", "string", (5, 5), None, None, None, "", True),
    )

    def __init__(
        self,
        group_id: str = "", protocol_type: str = "", group_state: str = "", group_type: str = "",
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type


class ListGroupsResponse(Message):
    KIND = "response"
    API_KEY = 16
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "error_code", "groups")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 5), None, None, None, 0, True),
        ("ErrorCode", "error_code", "int16", (0, 5)),
        ("Groups", "groups", "[]ListedGroup", (0, 5)),
    )

    def __init__(self, throttle_time_ms: int = 0, error_code: int = 0, groups: list[ListedGroup] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is EMPTY else groups
