"""UpdateFeaturesRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class FeatureUpdateKey(Struct):
    __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type")
    SCHEMA = (
        ("Feature", "feature", "string", (0, 2)),
        ("MaxVersionLevel", "max_version_level", "int16", (0, 2)),
        ("AllowDowngrade", "allow_downgrade", "bool", (0, 0)),
        ("UpgradeType", "upgrade_type", "int8", (1, 2), None, None, None, 1),
    )

    def __init__(
        self,
        feature: str = "", max_version_level: int = 0, allow_downgrade: bool = False, upgrade_type: int = 1,
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type


class UpdateFeaturesRequest(Message):
    KIND = "request"
    API_KEY = 57
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = ("timeout_ms", "feature_updates", "validate_only")
    SCHEMA = (
        ("timeoutMs", "timeout_ms", "int32", (0, 2), None, None, None, 60000),
        ("FeatureUpdates", "feature_updates", "[]FeatureUpdateKey", (0, 2)),
        ("ValidateOnly", "validate_only", "bool", (1, 2)),
    )

    def __init__(
        self,
        timeout_ms: int = 60000, feature_updates: list[FeatureUpdateKey] = EMPTY, validate_only: bool = False,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = [] if feature_updates is EMPTY else feature_updates
        self.validate_only = validate_only
