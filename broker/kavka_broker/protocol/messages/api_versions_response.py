"""ApiVersionsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ApiVersion(Struct):
    __slots__ = ("api_key", "min_version", "max_version")
    SCHEMA = (
        ("ApiKey", "api_key", "int16", (0, 5)),
        ("MinVersion", "min_version", "int16", (0, 5)),
        ("MaxVersion", "max_version", "int16", (0, 5)),
    )

    def __init__(self, api_key: int = 0, min_version: int = 0, max_version: int = 0) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


class SupportedFeatureKey(Struct):
    __slots__ = ("name", "min_version", "max_version")
    SCHEMA = (
        ("Name", "name", "string", (3, 5)),
        ("MinVersion", "min_version", "int16", (3, 5)),
        ("MaxVersion", "max_version", "int16", (3, 5)),
    )

    def __init__(self, name: str = "", min_version: int = 0, max_version: int = 0) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version


class FinalizedFeatureKey(Struct):
    __slots__ = ("name", "max_version_level", "min_version_level")
    SCHEMA = (
        ("Name", "name", "string", (3, 5)),
        ("MaxVersionLevel", "max_version_level", "int16", (3, 5)),
        ("MinVersionLevel", "min_version_level", "int16", (3, 5)),
    )

    def __init__(self, name: str = "", max_version_level: int = 0, min_version_level: int = 0) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level


class ApiVersionsResponse(Message):
    KIND = "response"
    API_KEY = 18
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __slots__ = (
        "error_code", "api_keys", "throttle_time_ms", "supported_features", "finalized_features_epoch",
        "finalized_features", "zk_migration_ready",
    )
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 5)),
        ("ApiKeys", "api_keys", "[]ApiVersion", (0, 5)),
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 5), None, None, None, 0, True),
        ("SupportedFeatures", "supported_features", "[]SupportedFeatureKey", (3, 5), None, (3, 5), 0, b"", True),
        ("FinalizedFeaturesEpoch", "finalized_features_epoch", "int64", (3, 5), None, (3, 5), 1, -1, True),
        ("FinalizedFeatures", "finalized_features", "[]FinalizedFeatureKey", (3, 5), None, (3, 5), 2, b"", True),
        ("ZkMigrationReady", "zk_migration_ready", "bool", (3, 5), None, (3, 5), 3, False, True),
    )

    def __init__(
        self,
        error_code: int = 0, api_keys: list[ApiVersion] = EMPTY, throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] = EMPTY, finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] = EMPTY, zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is EMPTY else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is EMPTY else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is EMPTY else finalized_features
        self.zk_migration_ready = zk_migration_ready
