"""StreamsGroupCurrentMemberAssignmentKey."""

from kavka_broker.protocol.message import Message


class StreamsGroupCurrentMemberAssignmentKey(Message):
    KIND = "coordinator-key"
    API_KEY = 22
    VERSIONS = (0, 0)
    __slots__ = ("group_id", "member_id")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0)),
        ("MemberId", "member_id", "string", (0, 0)),
    )

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id
