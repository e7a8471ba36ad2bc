"""RemoveRaftVoterRequest."""

from kavka_broker.protocol.message import ZERO, Message


class RemoveRaftVoterRequest(Message):
    KIND = "request"
    API_KEY = 81
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("cluster_id", "voter_id", "voter_directory_id")
    SCHEMA = (
        ("ClusterId", "cluster_id", "string", (0, 0), (0, 0)),
        ("VoterId", "voter_id", "int32", (0, 0)),
        ("VoterDirectoryId", "voter_directory_id", "uuid", (0, 0)),
    )

    def __init__(self, cluster_id: str | None = "", voter_id: int = 0, voter_directory_id: bytes = ZERO) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
