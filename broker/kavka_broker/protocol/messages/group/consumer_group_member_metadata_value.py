"""ConsumerGroupMemberMetadataValue."""

from kavka_broker.protocol.message import EMPTY, Message, Struct, frozen


class ClassicProtocol(Struct):
    __slots__ = ("name", "metadata")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Metadata", "metadata", "bytes", (0, 0)),
    )

    def __init__(self, name: str = "", metadata: bytes = b"") -> None:
        self.name = name
        self.metadata = metadata


class ClassicMemberMetadata(Struct):
    __slots__ = ("session_timeout_ms", "supported_protocols")
    SCHEMA = (
        ("SessionTimeoutMs", "session_timeout_ms", "int32", (0, 0)),
        ("SupportedProtocols", "supported_protocols", "[]ClassicProtocol", (0, 0)),
    )

    def __init__(self, session_timeout_ms: int = 0, supported_protocols: list[ClassicProtocol] = EMPTY) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = [] if supported_protocols is EMPTY else supported_protocols


DEFAULT_CLASSIC_MEMBER_METADATA = frozen(ClassicMemberMetadata)


class ConsumerGroupMemberMetadataValue(Message):
    KIND = "coordinator-value"
    API_KEY = 5
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "instance_id", "rack_id", "client_id", "client_host", "subscribed_topic_names", "subscribed_topic_regex",
        "rebalance_timeout_ms", "server_assignor", "classic_member_metadata",
    )
    SCHEMA = (
        ("InstanceId", "instance_id", "string", (0, 0), (0, 0)),
        ("RackId", "rack_id", "string", (0, 0), (0, 0)),
        ("ClientId", "client_id", "string", (0, 0)),
        ("ClientHost", "client_host", "string", (0, 0)),
        ("SubscribedTopicNames", "subscribed_topic_names", "[]string", (0, 0)),
        ("SubscribedTopicRegex", "subscribed_topic_regex", "string", (0, 0), (0, 0)),
        ("RebalanceTimeoutMs", "rebalance_timeout_ms", "int32", (0, 0), None, None, None, -1),
        ("ServerAssignor", "server_assignor", "string", (0, 0), (0, 0)),
        ("ClassicMemberMetadata", "classic_member_metadata", "ClassicMemberMetadata", (0, 0), (0, 0), (0, 0), 0),
    )

    def __init__(
        self,
        instance_id: str | None = "", rack_id: str | None = "", client_id: str = "", client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY, subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1, server_assignor: str | None = "",
        classic_member_metadata: ClassicMemberMetadata | None = DEFAULT_CLASSIC_MEMBER_METADATA,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = classic_member_metadata
