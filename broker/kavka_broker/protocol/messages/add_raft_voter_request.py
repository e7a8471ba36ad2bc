"""AddRaftVoterRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class Listener(Struct):
    __slots__ = ("name", "host", "port")
    SCHEMA = (
        ("Name", "name", "string", (0, 1)),
        ("Host", "host", "string", (0, 1)),
        ("Port", "port", "uint16", (0, 1)),
    )

    def __init__(self, name: str = "", host: str = "", port: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port


class AddRaftVoterRequest(Message):
    KIND = "request"
    API_KEY = 80
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id", "listeners", "ack_when_committed")
    SCHEMA = (
        ("ClusterId", "cluster_id", "string", (0, 1), (0, 1)),
        ("TimeoutMs", "timeout_ms", "int32", (0, 1)),
        ("VoterId", "voter_id", "int32", (0, 1)),
        ("VoterDirectoryId", "voter_directory_id", "uuid", (0, 1)),
        ("Listeners", "listeners", "[]Listener", (0, 1)),
        ("AckWhenCommitted", "ack_when_committed", "bool", (1, 1), None, None, None, True),
    )

    def __init__(
        self,
        cluster_id: str | None = "", timeout_ms: int = 0, voter_id: int = 0, voter_directory_id: bytes = ZERO,
        listeners: list[Listener] = EMPTY, ack_when_committed: bool = True,
    ) -> None:
        self.cluster_id = cluster_id
        self.timeout_ms = timeout_ms
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.ack_when_committed = ack_when_committed
