"""LeaveGroupResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class MemberResponse(Struct):
    __slots__ = ("member_id", "group_instance_id", "error_code")
    SCHEMA = (
        ("MemberId", "member_id", "string", (3, 5)),
        ("GroupInstanceId", "group_instance_id", "string", (3, 5), (3, 5)),
        ("ErrorCode", "error_code", "int16", (3, 5)),
    )

    def __init__(self, member_id: str = "", group_instance_id: str | None = "", error_code: int = 0) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


class LeaveGroupResponse(Message):
    KIND = "response"
    API_KEY = 13
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 4
    __slots__ = ("throttle_time_ms", "error_code", "members")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 5), None, None, None, 0, True),
        ("ErrorCode", "error_code", "int16", (0, 5)),
        ("Members", "members", "[]MemberResponse", (3, 5)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, members: list[MemberResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is EMPTY else members
