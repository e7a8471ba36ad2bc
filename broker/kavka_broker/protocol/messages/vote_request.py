"""VoteRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionData(Struct):
    __slots__ = (
        "partition_index", "replica_epoch", "replica_id", "replica_directory_id", "voter_directory_id",
        "last_offset_epoch", "last_offset", "pre_vote",
    )
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 2)),
        ("ReplicaEpoch", "replica_epoch", "int32", (0, 2)),
        ("ReplicaId", "replica_id", "int32", (0, 2)),
        ("ReplicaDirectoryId", "replica_directory_id", "uuid", (1, 2), None, None, None, b"", True),
        ("VoterDirectoryId", "voter_directory_id", "uuid", (1, 2), None, None, None, b"", True),
        ("LastOffsetEpoch", "last_offset_epoch", "int32", (0, 2)),
        ("LastOffset", "last_offset", "int64", (0, 2)),
        ("PreVote", "pre_vote", "bool", (2, 2)),
    )

    def __init__(
        self,
        partition_index: int = 0, replica_epoch: int = 0, replica_id: int = 0, replica_directory_id: bytes = ZERO,
        voter_directory_id: bytes = ZERO, last_offset_epoch: int = 0, last_offset: int = 0, pre_vote: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.replica_epoch = replica_epoch
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.voter_directory_id = voter_directory_id
        self.last_offset_epoch = last_offset_epoch
        self.last_offset = last_offset
        self.pre_vote = pre_vote


class TopicData(Struct):
    __slots__ = ("topic_name", "partitions")
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 2)),
        ("Partitions", "partitions", "[]PartitionData", (0, 2)),
    )

    def __init__(self, topic_name: str = "", partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class VoteRequest(Message):
    KIND = "request"
    API_KEY = 52
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = ("cluster_id", "voter_id", "topics")
    SCHEMA = (
        ("ClusterId", "cluster_id", "string", (0, 2), (0, 2), None, None, None),
        ("VoterId", "voter_id", "int32", (1, 2), None, None, None, -1, True),
        ("Topics", "topics", "[]TopicData", (0, 2)),
    )

    def __init__(self, cluster_id: str | None = None, voter_id: int = -1, topics: list[TopicData] = EMPTY) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is EMPTY else topics
