"""StreamsGroupMemberMetadataValue."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class Endpoint(Struct):
    __slots__ = ("host", "port")
    SCHEMA = (
        ("Host", "host", "string", (0, 0)),
        ("Port", "port", "uint16", (0, 0)),
    )

    def __init__(self, host: str = "", port: int = 0) -> None:
        self.host = host
        self.port = port


class KeyValue(Struct):
    __slots__ = ("key", "value")
    SCHEMA = (
        ("Key", "key", "string", (0, 0)),
        ("Value", "value", "string", (0, 0)),
    )

    def __init__(self, key: str = "", value: str = "") -> None:
        self.key = key
        self.value = value


class StreamsGroupMemberMetadataValue(Message):
    KIND = "coordinator-value"
    API_KEY = 19
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "instance_id", "rack_id", "client_id", "client_host", "rebalance_timeout_ms", "topology_epoch",
        "process_id", "user_endpoint", "client_tags",
    )
    SCHEMA = (
        ("InstanceId", "instance_id", "string", (0, 0), (0, 0)),
        ("RackId", "rack_id", "string", (0, 0), (0, 0)),
        ("ClientId", "client_id", "string", (0, 0)),
        ("ClientHost", "client_host", "string", (0, 0)),
        ("RebalanceTimeoutMs", "rebalance_timeout_ms", "int32", (0, 0), None, None, None, -1),
        ("TopologyEpoch", "topology_epoch", "int32", (0, 0)),
        ("ProcessId", "process_id", "string", (0, 0)),
        ("UserEndpoint", "user_endpoint", "Endpoint", (0, 0), (0, 0), None, None, None),
        ("ClientTags", "client_tags", "[]KeyValue", (0, 0)),
    )

    def __init__(
        self,
        instance_id: str | None = "", rack_id: str | None = "", client_id: str = "", client_host: str = "",
        rebalance_timeout_ms: int = -1, topology_epoch: int = 0, process_id: str = "",
        user_endpoint: Endpoint | None = None, client_tags: list[KeyValue] = EMPTY,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is EMPTY else client_tags
