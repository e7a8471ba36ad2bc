"""KRaftVersionRecord."""

from kavka_broker.protocol.message import Message


class KRaftVersionRecord(Message):
    KIND = "data"
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("version", "k_raft_version")
    SCHEMA = (
        ("Version", "version", "int16", (0, 0)),
        ("KRaftVersion", "k_raft_version", "int16", (0, 0)),
    )

    def __init__(self, version: int = 0, k_raft_version: int = 0) -> None:
        self.version = version
        self.k_raft_version = k_raft_version
