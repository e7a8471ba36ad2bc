"""JoinGroupRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class JoinGroupRequestProtocol(Struct):
    __slots__ = ("name", "metadata")
    SCHEMA = (
        ("Name", "name", "string", (0, 9)),
        ("Metadata", "metadata", "bytes", (0, 9)),
    )

    def __init__(self, name: str = "", metadata: bytes = b"") -> None:
        self.name = name
        self.metadata = metadata


class JoinGroupRequest(Message):
    KIND = "request"
    API_KEY = 11
    VERSIONS = (0, 9)
    FLEXIBLE_FROM = 6
    __slots__ = (
        "group_id", "session_timeout_ms", "rebalance_timeout_ms", "member_id", "group_instance_id", "protocol_type",
        "protocols", "reason",
    )
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 9)),
        ("SessionTimeoutMs", "session_timeout_ms", "int32", (0, 9)),
        ("RebalanceTimeoutMs", "rebalance_timeout_ms", "int32", (1, 9), None, None, None, -1, True),
        ("MemberId", "member_id", "string", (0, 9)),
        ("GroupInstanceId", "group_instance_id", "string", (5, 9), (5, 9), None, None, None),
        ("ProtocolType", "protocol_type", "string", (0, 9)),
        ("Protocols", "protocols", "[]JoinGroupRequestProtocol", (0, 9)),
        ("Reason", "reason", "string", (8, 9), (8, 9), None, None, None, True),
    )

    def __init__(
        self,
        group_id: str = "", session_timeout_ms: int = 0, rebalance_timeout_ms: int = -1, member_id: str = "",
        group_instance_id: str | None = None, protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = EMPTY, reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is EMPTY else protocols
        self.reason = reason
