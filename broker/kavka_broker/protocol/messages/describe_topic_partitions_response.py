"""DescribeTopicPartitionsResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class DescribeTopicPartitionsResponsePartition(Struct):
    __slots__ = (
        "error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes",
        "eligible_leader_replicas", "last_known_elr", "offline_replicas",
    )
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("PartitionIndex", "partition_index", "int32", (0, 0)),
        ("LeaderId", "leader_id", "int32", (0, 0)),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 0), None, None, None, -1, True),
        ("ReplicaNodes", "replica_nodes", "[]int32", (0, 0)),
        ("IsrNodes", "isr_nodes", "[]int32", (0, 0)),
        ("EligibleLeaderReplicas", "eligible_leader_replicas", "[]int32", (0, 0), (0, 0), None, None, None),
        ("LastKnownElr", "last_known_elr", "[]int32", (0, 0), (0, 0), None, None, None),
        ("OfflineReplicas", "offline_replicas", "[]int32", (0, 0), None, None, None, b"", True),
    )

    def __init__(
        self,
        error_code: int = 0, partition_index: int = 0, leader_id: int = 0, leader_epoch: int = -1,
        replica_nodes: list[int] = EMPTY, isr_nodes: list[int] = EMPTY,
        eligible_leader_replicas: list[int] | None = None, last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes = [] if isr_nodes is EMPTY else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = [] if offline_replicas is EMPTY else offline_replicas


class DescribeTopicPartitionsResponseTopic(Struct):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("Name", "name", "string", (0, 0), (0, 0)),
        ("TopicId", "topic_id", "uuid", (0, 0), None, None, None, b"", True),
        ("IsInternal", "is_internal", "bool", (0, 0), None, None, None, False, True),
        ("Partitions", "partitions", "[]DescribeTopicPartitionsResponsePartition", (0, 0)),
        ("TopicAuthorizedOperations", "topic_authorized_operations", "int32", (0, 0), None, None, None, -2147483648),
    )

    def __init__(
        self,
        error_code: int = 0, name: str | None = "", topic_id: bytes = ZERO, is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations = topic_authorized_operations


class Cursor(Struct):
    __slots__ = ("topic_name", "partition_index")
    SCHEMA = (
        ("TopicName", "topic_name", "string", (0, 0)),
        ("PartitionIndex", "partition_index", "int32", (0, 0)),
    )

    def __init__(self, topic_name: str = "", partition_index: int = 0) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsResponse(Message):
    KIND = "response"
    API_KEY = 75
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "topics", "next_cursor")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0), None, None, None, 0, True),
        ("Topics", "topics", "[]DescribeTopicPartitionsResponseTopic", (0, 0)),
        ("NextCursor", "next_cursor", "Cursor", (0, 0), (0, 0), None, None, None),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, topics: list[DescribeTopicPartitionsResponseTopic] = EMPTY,
        next_cursor: Cursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.next_cursor = next_cursor
