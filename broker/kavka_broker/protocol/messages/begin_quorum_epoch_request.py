"""BeginQuorumEpochRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionData(Struct):
    __slots__ = ("partition_index", "voter_directory_id", "leader_id", "leader_epoch")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 1)),
        ("VoterDirectoryId", "voter_directory_id", "uuid", (1, 1), None, None, None, b"", True),
        ("LeaderId", "leader_id", "int32", (0, 1)),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 1)),
    )

    def __init__(
        self,
        partition_index: int = 0, voter_directory_id: bytes = ZERO, leader_id: int = 0, leader_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.voter_directory_id = voter_directory_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


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


class BeginQuorumEpochRequest(Message):
    KIND = "request"
    API_KEY = 53
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("cluster_id", "voter_id", "topics", "leader_endpoints")
    SCHEMA = (
        ("ClusterId", "cluster_id", "string", (0, 1), (0, 1), None, None, None),
        ("VoterId", "voter_id", "int32", (1, 1), None, None, None, -1, True),
        ("Topics", "topics", "[]TopicData", (0, 1)),
        ("LeaderEndpoints", "leader_endpoints", "[]LeaderEndpoint", (1, 1), None, None, None, b"", True),
    )

    def __init__(
        self,
        cluster_id: str | None = None, voter_id: int = -1, topics: list[TopicData] = EMPTY,
        leader_endpoints: list[LeaderEndpoint] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is EMPTY else topics
        self.leader_endpoints = [] if leader_endpoints is EMPTY else leader_endpoints
