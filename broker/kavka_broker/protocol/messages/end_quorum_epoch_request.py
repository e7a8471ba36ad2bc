"""EndQuorumEpochRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class ReplicaInfo(Struct):
    __slots__ = ("candidate_id", "candidate_directory_id")
    SCHEMA = (
        ("CandidateId", "candidate_id", "int32", (1, 1)),
        ("CandidateDirectoryId", "candidate_directory_id", "uuid", (1, 1)),
    )

    def __init__(self, candidate_id: int = 0, candidate_directory_id: bytes = ZERO) -> None:
        self.candidate_id = candidate_id
        self.candidate_directory_id = candidate_directory_id


class PartitionData(Struct):
    __slots__ = ("partition_index", "leader_id", "leader_epoch", "preferred_successors", "preferred_candidates")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 1)),
        ("LeaderId", "leader_id", "int32", (0, 1)),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 1)),
        ("PreferredSuccessors", "preferred_successors", "[]int32", (0, 0), None, None, None, b"", True),
        ("PreferredCandidates", "preferred_candidates", "[]ReplicaInfo", (1, 1), None, None, None, b"", True),
    )

    def __init__(
        self,
        partition_index: int = 0, leader_id: int = 0, leader_epoch: int = 0,
        preferred_successors: list[int] = EMPTY, preferred_candidates: list[ReplicaInfo] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.preferred_successors = [] if preferred_successors is EMPTY else preferred_successors
        self.preferred_candidates = [] if preferred_candidates is EMPTY else preferred_candidates


class TopicData(Struct):
    __slots__ = ("topic_name", "partitions")
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 1)),
        ("Partitions", "partitions", "[]PartitionData", (0, 1)),
    )

    def __init__(self, topic_name: str = "", partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class LeaderEndpoint(Struct):
    __slots__ = ("name", "host", "port")
    SCHEMA = (
        ("Name", "name", "string", (1, 1)),
        ("Host", "host", "string", (1, 1)),
        ("Port", "port", "uint16", (1, 1)),
    )

    def __init__(self, name: str = "", host: str = "", port: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port


class EndQuorumEpochRequest(Message):
    KIND = "request"
    API_KEY = 54
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("cluster_id", "topics", "leader_endpoints")
    SCHEMA = (
        ("ClusterId", "cluster_id", "string", (0, 1), (0, 1), None, None, None),
        ("Topics", "topics", "[]TopicData", (0, 1)),
        ("LeaderEndpoints", "leader_endpoints", "[]LeaderEndpoint", (1, 1), None, None, None, b"", True),
    )

    def __init__(
        self,
        cluster_id: str | None = None, topics: list[TopicData] = EMPTY,
        leader_endpoints: list[LeaderEndpoint] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.topics = [] if topics is EMPTY else topics
        self.leader_endpoints = [] if leader_endpoints is EMPTY else leader_endpoints
