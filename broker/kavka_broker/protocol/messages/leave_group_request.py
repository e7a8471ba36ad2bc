"""LeaveGroupRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class MemberIdentity(Struct):
    __slots__ = ("member_id", "group_instance_id", "reason")
    SCHEMA = (
        ("MemberId", "member_id", "string", (3, 5)),
        ("GroupInstanceId", "group_instance_id", "string", (3, 5), (3, 5), None, None, None),
        ("Reason", "reason", "string", (5, 5), (5, 5), None, None, None, True),
    )

    def __init__(
        self,
        member_id: str = "", group_instance_id: str | None = None, reason: str | None = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


class LeaveGroupRequest(Message):
    KIND = "request"
    API_KEY = 13
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 4
    __slots__ = ("group_id", "member_id", "members")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 5)),
        ("MemberId", "member_id", "string", (0, 2)),
        ("Members", "members", "[]MemberIdentity", (3, 5)),
    )

    def __init__(self, group_id: str = "", member_id: str = "", members: list[MemberIdentity] = EMPTY) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is EMPTY else members
