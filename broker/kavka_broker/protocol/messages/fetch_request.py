"""FetchRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct, frozen


class ReplicaState(Struct):
    __slots__ = ("replica_id", "replica_epoch")
    SCHEMA = (
        ("ReplicaId", "replica_id", "int32", (15, 18), None, None, None, -1),
        ("ReplicaEpoch", "replica_epoch", "int64", (15, 18), None, None, None, -1),
    )

    def __init__(self, replica_id: int = -1, replica_epoch: int = -1) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch


DEFAULT_REPLICA_STATE = frozen(ReplicaState)


class FetchPartition(Struct):
    __slots__ = (
        "partition", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "log_start_offset",
        "partition_max_bytes", "replica_directory_id", "high_watermark",
    )
    SCHEMA = (
        ("Partition", "partition", "int32", (4, 18)),
        ("CurrentLeaderEpoch", "current_leader_epoch", "int32", (9, 18), None, None, None, -1, True),
        ("FetchOffset", "fetch_offset", "int64", (4, 18)),
        ("LastFetchedEpoch", "last_fetched_epoch", "int32", (12, 18), None, None, None, -1),
        ("LogStartOffset", "log_start_offset", "int64", (5, 18), None, None, None, -1, True),
        ("PartitionMaxBytes", "partition_max_bytes", "int32", (4, 18)),
        ("ReplicaDirectoryId", "replica_directory_id", "uuid", (17, 18), None, (17, 18), 0, b"", True),
        ("HighWatermark", "high_watermark", "int64", (18, 18), None, (18, 18), 1, 9223372036854775807, True),
    )

    def __init__(
        self,
        partition: int = 0, current_leader_epoch: int = -1, fetch_offset: int = 0, last_fetched_epoch: int = -1,
        log_start_offset: int = -1, partition_max_bytes: int = 0, replica_directory_id: bytes = ZERO,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark


class FetchTopic(Struct):
    __slots__ = ("topic", "topic_id", "partitions")
    SCHEMA = (
        ("Topic", "topic", "string", (4, 12), None, None, None, "", True),
        ("TopicId", "topic_id", "uuid", (13, 18), None, None, None, b"", True),
        ("Partitions", "partitions", "[]FetchPartition", (4, 18)),
    )

    def __init__(self, topic: str = "", topic_id: bytes = ZERO, partitions: list[FetchPartition] = EMPTY) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ForgottenTopic(Struct):
    __slots__ = ("topic", "topic_id", "partitions")
    SCHEMA = (
        ("Topic", "topic", "string", (7, 12), None, None, None, "", True),
        ("TopicId", "topic_id", "uuid", (13, 18), None, None, None, b"", True),
        ("Partitions", "partitions", "[]int32", (7, 18)),
    )

    def __init__(self, topic: str = "", topic_id: bytes = ZERO, partitions: list[int] = EMPTY) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class FetchRequest(Message):
    KIND = "request"
    API_KEY = 1
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    __slots__ = (
        "cluster_id", "replica_id", "replica_state", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level",
        "session_id", "session_epoch", "topics", "forgotten_topics_data", "rack_id",
    )
    SCHEMA = (
        ("ClusterId", "cluster_id", "string", (12, 18), (12, 18), (12, 18), 0, None, True),
        ("ReplicaId", "replica_id", "int32", (4, 14), None, None, None, -1),
        ("ReplicaState", "replica_state", "ReplicaState", (15, 18), None, (15, 18), 1),
        ("MaxWaitMs", "max_wait_ms", "int32", (4, 18)),
        ("MinBytes", "min_bytes", "int32", (4, 18)),
        ("MaxBytes", "max_bytes", "int32", (4, 18), None, None, None, 2147483647, True),
        ("IsolationLevel", "isolation_level", "int8", (4, 18), None, None, None, 0, True),
        ("SessionId", "session_id", "int32", (7, 18), None, None, None, 0, True),
        ("SessionEpoch", "session_epoch", "int32", (7, 18), None, None, None, -1, True),
        ("Topics", "topics", "[]FetchTopic", (4, 18)),
        ("ForgottenTopicsData", "forgotten_topics_data", "[]ForgottenTopic", (7, 18)),
        ("RackId", "rack_id", "string", (11, 18), None, None, None, "", True),
    )

    def __init__(
        self,
        cluster_id: str | None = None, replica_id: int = -1, replica_state: ReplicaState = DEFAULT_REPLICA_STATE,
        max_wait_ms: int = 0, min_bytes: int = 0, max_bytes: int = 2147483647, isolation_level: int = 0,
        session_id: int = 0, session_epoch: int = -1, topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY, rack_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is EMPTY else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        self.rack_id = rack_id
