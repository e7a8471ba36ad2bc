"""BrokerRegistrationRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class Listener(Struct):
    __slots__ = ("name", "host", "port", "security_protocol")
    SCHEMA = (
        ("Name", "name", "string", (0, 4)),
        ("Host", "host", "string", (0, 4)),
        ("Port", "port", "uint16", (0, 4)),
        ("SecurityProtocol", "security_protocol", "int16", (0, 4)),
    )

    def __init__(self, name: str = "", host: str = "", port: int = 0, security_protocol: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol


class Feature(Struct):
    __slots__ = ("name", "min_supported_version", "max_supported_version")
    SCHEMA = (
        ("Name", "name", "string", (0, 4)),
        ("MinSupportedVersion", "min_supported_version", "int16", (0, 4)),
        ("MaxSupportedVersion", "max_supported_version", "int16", (0, 4)),
    )

    def __init__(self, name: str = "", min_supported_version: int = 0, max_supported_version: int = 0) -> None:
        self.name = name
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version


class BrokerRegistrationRequest(Message):
    KIND = "request"
    API_KEY = 62
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "broker_id", "cluster_id", "incarnation_id", "listeners", "features", "rack", "is_migrating_zk_broker",
        "log_dirs", "previous_broker_epoch",
    )
    SCHEMA = (
        ("BrokerId", "broker_id", "int32", (0, 4)),
        ("ClusterId", "cluster_id", "string", (0, 4)),
        ("IncarnationId", "incarnation_id", "uuid", (0, 4)),
        ("Listeners", "listeners", "[]Listener", (0, 4)),
        ("Features", "features", "[]Feature", (0, 4)),
        ("Rack", "rack", "string", (0, 4), (0, 4)),
        ("IsMigratingZkBroker", "is_migrating_zk_broker", "bool", (1, 4)),
        ("LogDirs", "log_dirs", "[]uuid", (2, 4), None, None, None, b"", True),
        ("PreviousBrokerEpoch", "previous_broker_epoch", "int64", (3, 4), None, None, None, -1, True),
    )

    def __init__(
        self,
        broker_id: int = 0, cluster_id: str = "", incarnation_id: bytes = ZERO, listeners: list[Listener] = EMPTY,
        features: list[Feature] = EMPTY, rack: str | None = "", is_migrating_zk_broker: bool = False,
        log_dirs: list[bytes] = EMPTY, previous_broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.incarnation_id = incarnation_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.features = [] if features is EMPTY else features
        self.rack = rack
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.previous_broker_epoch = previous_broker_epoch
