"""SyncGroupRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class SyncGroupRequestAssignment(Struct):
    __slots__ = ("member_id", "assignment")
    SCHEMA = (
        ("MemberId", "member_id", "string", (0, 5)),
        ("Assignment", "assignment", "bytes", (0, 5)),
    )

    def __init__(self, member_id: str = "", assignment: bytes = b"") -> None:
        self.member_id = member_id
        self.assignment = assignment


class SyncGroupRequest(Message):
    KIND = "request"
    API_KEY = 14
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 4
    __slots__ = (
        "group_id", "generation_id", "member_id", "group_instance_id", "protocol_type", "protocol_name",
        "assignments",
    )
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 5)),
        ("GenerationId", "generation_id", "int32", (0, 5)),
        ("MemberId", "member_id", "string", (0, 5)),
        ("GroupInstanceId", "group_instance_id", "string", (3, 5), (3, 5), None, None, None),
        ("ProtocolType", "protocol_type", "string", (5, 5), (5, 5), None, None, None, True),
        ("ProtocolName", "protocol_name", "string", (5, 5), (5, 5), None, None, None, True),
        ("Assignments", "assignments", "[]SyncGroupRequestAssignment", (0, 5)),
    )

    def __init__(
        self,
        group_id: str = "", generation_id: int = 0, member_id: str = "", group_instance_id: str | None = None,
        protocol_type: str | None = None, protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is EMPTY else assignments
