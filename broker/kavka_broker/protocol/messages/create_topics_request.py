"""CreateTopicsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class CreatableReplicaAssignment(Struct):
    __slots__ = ("partition_index", "broker_ids")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (2, 7)),
        ("BrokerIds", "broker_ids", "[]int32", (2, 7)),
    )

    def __init__(self, partition_index: int = 0, broker_ids: list[int] = EMPTY) -> None:
        self.partition_index = partition_index
        self.broker_ids = [] if broker_ids is EMPTY else broker_ids


class CreatableTopicConfig(Struct):
    __slots__ = ("name", "value")
    SCHEMA = (
        ("Name", "name", "string", (2, 7)),
        ("Value", "value", "string", (2, 7), (2, 7)),
    )

    def __init__(self, name: str = "", value: str | None = "") -> None:
        self.name = name
        self.value = value


class CreatableTopic(Struct):
    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs")
    SCHEMA = (
        ("Name", "name", "string", (2, 7)),
        ("NumPartitions", "num_partitions", "int32", (2, 7)),
        ("ReplicationFactor", "replication_factor", "int16", (2, 7)),
        ("Assignments", "assignments", "[]CreatableReplicaAssignment", (2, 7)),
        ("Configs", "configs", "[]CreatableTopicConfig", (2, 7)),
    )

    def __init__(
        self,
        name: str = "", num_partitions: int = 0, replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = EMPTY, configs: list[CreatableTopicConfig] = EMPTY,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = [] if assignments is EMPTY else assignments
        self.configs = [] if configs is EMPTY else configs


class CreateTopicsRequest(Message):
    KIND = "request"
    API_KEY = 19
    VERSIONS = (2, 7)
    FLEXIBLE_FROM = 5
    __slots__ = ("topics", "timeout_ms", "validate_only")
    SCHEMA = (
        ("Topics", "topics", "[]CreatableTopic", (2, 7)),
        ("timeoutMs", "timeout_ms", "int32", (2, 7), None, None, None, 60000),
        ("validateOnly", "validate_only", "bool", (2, 7)),
    )

    def __init__(
        self,
        topics: list[CreatableTopic] = EMPTY, timeout_ms: int = 60000, validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
