"""MetadataResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class MetadataResponseBroker(Struct):
    __slots__ = ("node_id", "host", "port", "rack")
    SCHEMA = (
        ("NodeId", "node_id", "int32", (0, 13)),
        ("Host", "host", "string", (0, 13)),
        ("Port", "port", "int32", (0, 13)),
        ("Rack", "rack", "string", (1, 13), (1, 13), None, None, None, True),
    )

    def __init__(self, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class MetadataResponsePartition(Struct):
    __slots__ = (
        "error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes",
        "offline_replicas",
    )
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 13)),
        ("PartitionIndex", "partition_index", "int32", (0, 13)),
        ("LeaderId", "leader_id", "int32", (0, 13)),
        ("LeaderEpoch", "leader_epoch", "int32", (7, 13), None, None, None, -1, True),
        ("ReplicaNodes", "replica_nodes", "[]int32", (0, 13)),
        ("IsrNodes", "isr_nodes", "[]int32", (0, 13)),
        ("OfflineReplicas", "offline_replicas", "[]int32", (5, 13), None, None, None, b"", True),
    )

    def __init__(
        self,
        error_code: int = 0, partition_index: int = 0, leader_id: int = 0, leader_epoch: int = -1,
        replica_nodes: list[int] = EMPTY, isr_nodes: list[int] = EMPTY, offline_replicas: list[int] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes = [] if isr_nodes is EMPTY else isr_nodes
        self.offline_replicas = [] if offline_replicas is EMPTY else offline_replicas


class MetadataResponseTopic(Struct):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 13)),
        ("Name", "name", "string", (0, 13), (12, 13)),
        ("TopicId", "topic_id", "uuid", (10, 13), None, None, None, b"", True),
        ("IsInternal", "is_internal", "bool", (1, 13), None, None, None, False, True),
        ("Partitions", "partitions", "[]MetadataResponsePartition", (0, 13)),
        ("TopicAuthorizedOperations", "topic_authorized_operations", "int32", (8, 13), None, None, None, -2147483648),
    )

    def __init__(
        self,
        error_code: int = 0, name: str | None = "", topic_id: bytes = ZERO, is_internal: bool = False,
        partitions: list[MetadataResponsePartition] = EMPTY, topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations = topic_authorized_operations


class MetadataResponse(Message):
    KIND = "response"
    API_KEY = 3
    VERSIONS = (0, 13)
    FLEXIBLE_FROM = 9
    __slots__ = (
        "throttle_time_ms", "brokers", "cluster_id", "controller_id", "topics", "cluster_authorized_operations",
        "error_code",
    )
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (3, 13), None, None, None, 0, True),
        ("Brokers", "brokers", "[]MetadataResponseBroker", (0, 13)),
        ("ClusterId", "cluster_id", "string", (2, 13), (2, 13), None, None, None, True),
        ("ControllerId", "controller_id", "int32", (1, 13), None, None, None, -1, True),
        ("Topics", "topics", "[]MetadataResponseTopic", (0, 13)),
        ("ClusterAuthorizedOperations", "cluster_authorized_operations", "int32",
         (8, 10), None, None, None, -2147483648),
        ("ErrorCode", "error_code", "int16", (13, 13), None, None, None, 0, True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, brokers: list[MetadataResponseBroker] = EMPTY, cluster_id: str | None = None,
        controller_id: int = -1, topics: list[MetadataResponseTopic] = EMPTY,
        cluster_authorized_operations: int = -2147483648, error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is EMPTY else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is EMPTY else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
