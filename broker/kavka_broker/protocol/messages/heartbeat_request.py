"""HeartbeatRequest."""

from kavka_broker.protocol.message import Message


class HeartbeatRequest(Message):
    KIND = "request"
    API_KEY = 12
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 4
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 4)),
        ("GenerationId", "generation_id", "int32", (0, 4)),
        ("MemberId", "member_id", "string", (0, 4)),
        ("GroupInstanceId", "group_instance_id", "string", (3, 4), (3, 4), None, None, None),
    )

    def __init__(
        self,
        group_id: str = "", generation_id: int = 0, member_id: str = "", group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
