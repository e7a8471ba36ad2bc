"""LeaderChangeMessage."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class Voter(Struct):
    __slots__ = ("voter_id", "voter_directory_id")
    SCHEMA = (
        ("VoterId", "voter_id", "int32", (0, 1)),
        ("VoterDirectoryId", "voter_directory_id", "uuid", (1, 1)),
    )

    def __init__(self, voter_id: int = 0, voter_directory_id: bytes = ZERO) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id


class LeaderChangeMessage(Message):
    KIND = "data"
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("version", "leader_id", "voters", "granting_voters")
    SCHEMA = (
        ("Version", "version", "int16", (0, 1)),
        ("LeaderId", "leader_id", "int32", (0, 1)),
        ("Voters", "voters", "[]Voter", (0, 1)),
        ("GrantingVoters", "granting_voters", "[]Voter", (0, 1)),
    )

    def __init__(
        self,
        version: int = 0, leader_id: int = 0, voters: list[Voter] = EMPTY, granting_voters: list[Voter] = EMPTY,
    ) -> None:
        self.version = version
        self.leader_id = leader_id
        self.voters = [] if voters is EMPTY else voters
        self.granting_voters = [] if granting_voters is EMPTY else granting_voters
