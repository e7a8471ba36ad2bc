"""DescribeQuorumResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class ReplicaState(Struct):
    __slots__ = (
        "replica_id", "replica_directory_id", "log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp",
    )
    SCHEMA = (
        ("ReplicaId", "replica_id", "int32", (0, 2)),
        ("ReplicaDirectoryId", "replica_directory_id", "uuid", (2, 2)),
        ("LogEndOffset", "log_end_offset", "int64", (0, 2)),
        ("LastFetchTimestamp", "last_fetch_timestamp", "int64", (1, 2), None, None, None, -1, True),
        ("LastCaughtUpTimestamp", "last_caught_up_timestamp", "int64", (1, 2), None, None, None, -1, True),
    )

    def __init__(
        self,
        replica_id: int = 0, replica_directory_id: bytes = ZERO, log_end_offset: int = 0,
        last_fetch_timestamp: int = -1, last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp


class PartitionData(Struct):
    __slots__ = (
        "partition_index", "error_code", "error_message", "leader_id", "leader_epoch", "high_watermark",
        "current_voters", "observers",
    )
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 2)),
        ("ErrorCode", "error_code", "int16", (0, 2)),
        ("ErrorMessage", "error_message", "string", (2, 2), (2, 2), None, None, "", True),
        ("LeaderId", "leader_id", "int32", (0, 2)),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 2)),
        ("HighWatermark", "high_watermark", "int64", (0, 2)),
        ("CurrentVoters", "current_voters", "[]ReplicaState", (0, 2)),
        ("Observers", "observers", "[]ReplicaState", (0, 2)),
    )

    def __init__(
        self,
        partition_index: int = 0, error_code: int = 0, error_message: str | None = "", leader_id: int = 0,
        leader_epoch: int = 0, high_watermark: int = 0, current_voters: list[ReplicaState] = EMPTY,
        observers: list[ReplicaState] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters = [] if current_voters is EMPTY else current_voters
        self.observers = [] if observers is EMPTY else observers


class TopicData(Struct):
    __slots__ = ("topic_name", "partitions")
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 2)),
        ("Partitions", "partitions", "[]PartitionData", (0, 2)),
    )

    def __init__(self, topic_name: str = "", partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class Listener(Struct):
    __slots__ = ("name", "host", "port")
    SCHEMA = (
        ("Name", "name", "string", (2, 2)),
        ("Host", "host", "string", (2, 2)),
        ("Port", "port", "uint16", (2, 2)),
    )

    def __init__(self, name: str = "", host: str = "", port: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port


class Node(Struct):
    __slots__ = ("node_id", "listeners")
    SCHEMA = (
        ("NodeId", "node_id", "int32", (2, 2)),
        ("Listeners", "listeners", "[]Listener", (2, 2)),
    )

    def __init__(self, node_id: int = 0, listeners: list[Listener] = EMPTY) -> None:
        self.node_id = node_id
        self.listeners = [] if listeners is EMPTY else listeners


class DescribeQuorumResponse(Message):
    KIND = "response"
    API_KEY = 55
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = ("error_code", "error_message", "topics", "nodes")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 2)),
        ("ErrorMessage", "error_message", "string", (2, 2), (2, 2), None, None, "", True),
        ("Topics", "topics", "[]TopicData", (0, 2)),
        ("Nodes", "nodes", "[]Node", (2, 2)),
    )

    def __init__(
        self,
        error_code: int = 0, error_message: str | None = "", topics: list[TopicData] = EMPTY,
        nodes: list[Node] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is EMPTY else topics
        self.nodes = [] if nodes is EMPTY else nodes
