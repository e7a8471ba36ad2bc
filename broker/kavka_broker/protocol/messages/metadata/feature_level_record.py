"""FeatureLevelRecord."""

from kavka_broker.protocol.message import Message


class FeatureLevelRecord(Message):
    KIND = "metadata"
    API_KEY = 12
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("name", "feature_level")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("FeatureLevel", "feature_level", "int16", (0, 0)),
    )

    def __init__(self, name: str = "", feature_level: int = 0) -> None:
        self.name = name
        self.feature_level = feature_level
