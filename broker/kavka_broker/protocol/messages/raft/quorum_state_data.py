"""QuorumStateData."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class Voter(Struct):
    __slots__ = ("voter_id",)
    SCHEMA = (
        ("VoterId", "voter_id", "int32", (0, 0)),
    )

    def __init__(self, voter_id: int = 0) -> None:
        self.voter_id = voter_id


class QuorumStateData(Message):
    KIND = "data"
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "cluster_id", "leader_id", "leader_epoch", "voted_id", "voted_directory_id", "applied_offset",
        "current_voters",
    )
    SCHEMA = (
        ("ClusterId", "cluster_id", "string", (0, 0)),
        ("LeaderId", "leader_id", "int32", (0, 1), None, None, None, -1),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 1), None, None, None, -1),
        ("VotedId", "voted_id", "int32", (0, 1), None, None, None, -1),
        ("VotedDirectoryId", "voted_directory_id", "uuid", (1, 1)),
        ("AppliedOffset", "applied_offset", "int64", (0, 0)),
        ("CurrentVoters", "current_voters", "[]Voter", (0, 0), (0, 0)),
    )

    def __init__(
        self,
        cluster_id: str = "", leader_id: int = -1, leader_epoch: int = -1, voted_id: int = -1,
        voted_directory_id: bytes = ZERO, applied_offset: int = 0, current_voters: list[Voter] | None = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.voted_id = voted_id
        self.voted_directory_id = voted_directory_id
        self.applied_offset = applied_offset
        self.current_voters = [] if current_voters is EMPTY else current_voters
