"""GroupMetadataValue."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class MemberMetadata(Struct):
    __slots__ = (
        "member_id", "group_instance_id", "client_id", "client_host", "rebalance_timeout", "session_timeout",
        "subscription", "assignment",
    )
    SCHEMA = (
        ("memberId", "member_id", "string", (0, 4)),
        ("groupInstanceId", "group_instance_id", "string", (3, 4), (3, 4), None, None, None, True),
        ("clientId", "client_id", "string", (0, 4)),
        ("clientHost", "client_host", "string", (0, 4)),
        ("rebalanceTimeout", "rebalance_timeout", "int32", (1, 4), None, None, None, -1, True),
        ("sessionTimeout", "session_timeout", "int32", (0, 4)),
        ("subscription", "subscription", "bytes", (0, 4)),
        ("assignment", "assignment", "bytes", (0, 4)),
    )

    def __init__(
        self,
        member_id: str = "", group_instance_id: str | None = None, client_id: str = "", client_host: str = "",
        rebalance_timeout: int = -1, session_timeout: int = 0, subscription: bytes = b"", assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.subscription = subscription
        self.assignment = assignment


class GroupMetadataValue(Message):
    KIND = "coordinator-value"
    API_KEY = 2
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 4
    __slots__ = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members")
    SCHEMA = (
        ("protocolType", "protocol_type", "string", (0, 4)),
        ("generation", "generation", "int32", (0, 4)),
        ("protocol", "protocol", "string", (0, 4), (0, 4)),
        ("leader", "leader", "string", (0, 4), (0, 4)),
        ("currentStateTimestamp", "current_state_timestamp", "int64", (2, 4), None, None, None, -1, True),
        ("members", "members", "[]MemberMetadata", (0, 4)),
    )

    def __init__(
        self,
        protocol_type: str = "", generation: int = 0, protocol: str | None = "", leader: str | None = "",
        current_state_timestamp: int = -1, members: list[MemberMetadata] = EMPTY,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is EMPTY else members
