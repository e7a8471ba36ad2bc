"""RegisterBrokerRecord."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class BrokerEndpoint(Struct):
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


class BrokerFeature(Struct):
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


class RegisterBrokerRecord(Message):
    KIND = "metadata"
    API_KEY = 0
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "broker_id", "is_migrating_zk_broker", "incarnation_id", "broker_epoch", "end_points", "features", "rack",
        "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs",
    )
    SCHEMA = (
        ("BrokerId", "broker_id", "int32", (0, 4)),
        ("IsMigratingZkBroker", "is_migrating_zk_broker", "bool", (2, 4)),
        ("IncarnationId", "incarnation_id", "uuid", (0, 4)),
        ("BrokerEpoch", "broker_epoch", "int64", (0, 4)),
        ("EndPoints", "end_points", "[]BrokerEndpoint", (0, 4)),
        ("Features", "features", "[]BrokerFeature", (0, 4)),
        ("Rack", "rack", "string", (0, 4), (0, 4)),
        ("Fenced", "fenced", "bool", (0, 4), None, None, None, True),
        ("InControlledShutdown", "in_controlled_shutdown", "bool", (1, 4)),
        ("LogDirs", "log_dirs", "[]uuid", (3, 4), None, (3, 4), 0),
        ("CordonedLogDirs", "cordoned_log_dirs", "[]uuid", (4, 4), (4, 4), (4, 4), 1, None),
    )

    def __init__(
        self,
        broker_id: int = 0, is_migrating_zk_broker: bool = False, incarnation_id: bytes = ZERO,
        broker_epoch: int = 0, end_points: list[BrokerEndpoint] = EMPTY, features: list[BrokerFeature] = EMPTY,
        rack: str | None = "", fenced: bool = True, in_controlled_shutdown: bool = False,
        log_dirs: list[bytes] = EMPTY, cordoned_log_dirs: list[bytes] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.incarnation_id = incarnation_id
        self.broker_epoch = broker_epoch
        self.end_points = [] if end_points is EMPTY else end_points
        self.features = [] if features is EMPTY else features
        self.rack = rack
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
