"""UpdateRaftVoterRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct, frozen


class Listener(Struct):
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


class UpdateRaftVoterRequest(Message):
    KIND = "request"
    API_KEY = 82
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "cluster_id", "current_leader_epoch", "voter_id", "voter_directory_id", "listeners",
        "k_raft_version_feature",
    )
    SCHEMA = (
        ("ClusterId", "cluster_id", "string", (0, 0), (0, 0)),
        ("CurrentLeaderEpoch", "current_leader_epoch", "int32", (0, 0)),
        ("VoterId", "voter_id", "int32", (0, 0)),
        ("VoterDirectoryId", "voter_directory_id", "uuid", (0, 0)),
        ("Listeners", "listeners", "[]Listener", (0, 0)),
        ("KRaftVersionFeature", "k_raft_version_feature", "KRaftVersionFeature", (0, 0)),
    )

    def __init__(
        self,
        cluster_id: str | None = "", current_leader_epoch: int = 0, voter_id: int = 0,
        voter_directory_id: bytes = ZERO, listeners: list[Listener] = EMPTY,
        k_raft_version_feature: KRaftVersionFeature = DEFAULT_K_RAFT_VERSION_FEATURE,
    ) -> None:
        self.cluster_id = cluster_id
        self.current_leader_epoch = current_leader_epoch
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.k_raft_version_feature = k_raft_version_feature
