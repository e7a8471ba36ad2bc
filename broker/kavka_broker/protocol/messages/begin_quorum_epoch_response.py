"""BeginQuorumEpochResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class PartitionData(Struct):
    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 1)),
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("LeaderId", "leader_id", "int32", (0, 1)),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 1)),
    )

    def __init__(
        self,
        partition_index: int = 0, error_code: int = 0, leader_id: int = 0, leader_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
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


class NodeEndpoint(Struct):
    __slots__ = ("node_id", "host", "port")
    SCHEMA = (
        ("NodeId", "node_id", "int32", (1, 1)),
        ("Host", "host", "string", (1, 1)),
        ("Port", "port", "uint16", (1, 1)),
    )

    def __init__(self, node_id: int = 0, host: str = "", port: int = 0) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port


class BeginQuorumEpochResponse(Message):
    KIND = "response"
    API_KEY = 53
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("error_code", "topics", "node_endpoints")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("Topics", "topics", "[]TopicData", (0, 1)),
        ("NodeEndpoints", "node_endpoints", "[]NodeEndpoint", (1, 1), None, (1, 1), 0),
    )

    def __init__(
        self,
        error_code: int = 0, topics: list[TopicData] = EMPTY, node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
