"""SnapshotFooterRecord."""

from kavka_broker.protocol.message import Message


class SnapshotFooterRecord(Message):
    KIND = "data"
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("version",)
    SCHEMA = (
        ("Version", "version", "int16", (0, 0)),
    )

    def __init__(self, version: int = 0) -> None:
        self.version = version
