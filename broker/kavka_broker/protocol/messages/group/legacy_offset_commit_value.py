"""LegacyOffsetCommitValue."""

from kavka_broker.protocol.message import Message


class LegacyOffsetCommitValue(Message):
    KIND = "coordinator-value"
    API_KEY = 0
    VERSIONS = (0, 0)
    __slots__ = ("offset", "metadata", "commit_timestamp")
    SCHEMA = (
        ("offset", "offset", "int64", (0, 0)),
        ("metadata", "metadata", "string", (0, 0)),
        ("commitTimestamp", "commit_timestamp", "int64", (0, 0)),
    )

    def __init__(self, offset: int = 0, metadata: str = "", commit_timestamp: int = 0) -> None:
        self.offset = offset
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
