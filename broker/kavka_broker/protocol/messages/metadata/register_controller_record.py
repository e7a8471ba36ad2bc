"""RegisterControllerRecord."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class ControllerEndpoint(Struct):
    __slots__ = ("name", "host", "port", "security_protocol")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Host", "host", "string", (0, 0)),
        ("Port", "port", "uint16", (0, 0)),
        ("SecurityProtocol", "security_protocol", "int16", (0, 0)),
    )

    def __init__(self, name: str = "", host: str = "", port: int = 0, security_protocol: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol


class ControllerFeature(Struct):
    __slots__ = ("name", "min_supported_version", "max_supported_version")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("MinSupportedVersion", "min_supported_version", "int16", (0, 0)),
        ("MaxSupportedVersion", "max_supported_version", "int16", (0, 0)),
    )

    def __init__(self, name: str = "", min_supported_version: int = 0, max_supported_version: int = 0) -> None:
        self.name = name
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version


class RegisterControllerRecord(Message):
    KIND = "metadata"
    API_KEY = 27
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("controller_id", "incarnation_id", "zk_migration_ready", "end_points", "features")
    SCHEMA = (
        ("ControllerId", "controller_id", "int32", (0, 0)),
        ("IncarnationId", "incarnation_id", "uuid", (0, 0)),
        ("ZkMigrationReady", "zk_migration_ready", "bool", (0, 0)),
        ("EndPoints", "end_points", "[]ControllerEndpoint", (0, 0)),
        ("Features", "features", "[]ControllerFeature", (0, 0)),
    )

    def __init__(
        self,
        controller_id: int = 0, incarnation_id: bytes = ZERO, zk_migration_ready: bool = False,
        end_points: list[ControllerEndpoint] = EMPTY, features: list[ControllerFeature] = EMPTY,
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.end_points = [] if end_points is EMPTY else end_points
        self.features = [] if features is EMPTY else features
