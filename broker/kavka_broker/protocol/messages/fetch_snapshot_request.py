"""FetchSnapshotRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct, frozen


class SnapshotId(Struct):
    __slots__ = ("end_offset", "epoch")
    SCHEMA = (
        ("EndOffset", "end_offset", "int64", (0, 1)),
        ("Epoch", "epoch", "int32", (0, 1)),
    )

    def __init__(self, end_offset: int = 0, epoch: int = 0) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


DEFAULT_SNAPSHOT_ID = frozen(SnapshotId)


class PartitionSnapshot(Struct):
    __slots__ = ("partition", "current_leader_epoch", "snapshot_id", "position", "replica_directory_id")
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 1)),
        ("CurrentLeaderEpoch", "current_leader_epoch", "int32", (0, 1)),
        ("SnapshotId", "snapshot_id", "SnapshotId", (0, 1)),
        ("Position", "position", "int64", (0, 1)),
        ("ReplicaDirectoryId", "replica_directory_id", "uuid", (1, 1), None, (1, 1), 0, b"", True),
    )

    def __init__(
        self,
        partition: int = 0, current_leader_epoch: int = 0, snapshot_id: SnapshotId = DEFAULT_SNAPSHOT_ID,
        position: int = 0, replica_directory_id: bytes = ZERO,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.snapshot_id = snapshot_id
        self.position = position
        self.replica_directory_id = replica_directory_id


class TopicSnapshot(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 1)),
        ("Partitions", "partitions", "[]PartitionSnapshot", (0, 1)),
    )

    def __init__(self, name: str = "", partitions: list[PartitionSnapshot] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class FetchSnapshotRequest(Message):
    KIND = "request"
    API_KEY = 59
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("cluster_id", "replica_id", "max_bytes", "topics")
    SCHEMA = (
        ("ClusterId", "cluster_id", "string", (0, 1), (0, 1), (0, 1), 0, None),
        ("ReplicaId", "replica_id", "int32", (0, 1), None, None, None, -1),
        ("MaxBytes", "max_bytes", "int32", (0, 1), None, None, None, 2147483647),
        ("Topics", "topics", "[]TopicSnapshot", (0, 1)),
    )

    def __init__(
        self,
        cluster_id: str | None = None, replica_id: int = -1, max_bytes: int = 2147483647,
        topics: list[TopicSnapshot] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.max_bytes = max_bytes
        self.topics = [] if topics is EMPTY else topics
