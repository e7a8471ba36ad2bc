"""VotersRecord."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct, frozen


class Endpoint(Struct):
    __slots__ = ("name", "host", "port")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Host", "host", "string", (0, 0)),
        ("Port", "port", "uint16", (0, 0)),
    )

    def __init__(self, name: str = "", host: str = "", port: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port


class KRaftVersionFeature(Struct):
    __slots__ = ("min_supported_version", "max_supported_version")
    SCHEMA = (
        ("MinSupportedVersion", "min_supported_version", "int16", (0, 0)),
        ("MaxSupportedVersion", "max_supported_version", "int16", (0, 0)),
    )

    def __init__(self, min_supported_version: int = 0, max_supported_version: int = 0) -> None:
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version


DEFAULT_K_RAFT_VERSION_FEATURE = frozen(KRaftVersionFeature)


class Voter(Struct):
    __slots__ = ("voter_id", "voter_directory_id", "endpoints", "k_raft_version_feature")
    SCHEMA = (
        ("VoterId", "voter_id", "int32", (0, 0)),
        ("VoterDirectoryId", "voter_directory_id", "uuid", (0, 0)),
        ("Endpoints", "endpoints", "[]Endpoint", (0, 0)),
        ("KRaftVersionFeature", "k_raft_version_feature", "KRaftVersionFeature", (0, 0)),
    )

    def __init__(
        self,
        voter_id: int = 0, voter_directory_id: bytes = ZERO, endpoints: list[Endpoint] = EMPTY,
        k_raft_version_feature: KRaftVersionFeature = DEFAULT_K_RAFT_VERSION_FEATURE,
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.endpoints = [] if endpoints is EMPTY else endpoints
        self.k_raft_version_feature = k_raft_version_feature


class VotersRecord(Message):
    KIND = "data"
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("version", "voters")
    SCHEMA = (
        ("Version", "version", "int16", (0, 0)),
        ("Voters", "voters", "[]Voter", (0, 0)),
    )

    def __init__(self, version: int = 0, voters: list[Voter] = EMPTY) -> None:
        self.version = version
        self.voters = [] if voters is EMPTY else voters
