"""SnapshotHeaderRecord."""

from kavka_broker.protocol.message import Message


class SnapshotHeaderRecord(Message):
    KIND = "data"
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("version", "last_contained_log_timestamp")
    SCHEMA = (
        ("Version", "version", "int16", (0, 0)),
        ("LastContainedLogTimestamp", "last_contained_log_timestamp", "int64", (0, 0)),
    )

    def __init__(self, version: int = 0, last_contained_log_timestamp: int = 0) -> None:
        self.version = version
        self.last_contained_log_timestamp = last_contained_log_timestamp
