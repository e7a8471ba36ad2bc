"""FetchSnapshotResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Records, Struct, frozen


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


class LeaderIdAndEpoch(Struct):
    __slots__ = ("leader_id", "leader_epoch")
    SCHEMA = (
        ("LeaderId", "leader_id", "int32", (0, 1)),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 1)),
    )

    def __init__(self, leader_id: int = 0, leader_epoch: int = 0) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


DEFAULT_LEADER_ID_AND_EPOCH = frozen(LeaderIdAndEpoch)


class PartitionSnapshot(Struct):
    __slots__ = ("index", "error_code", "snapshot_id", "current_leader", "size", "position", "unaligned_records")
    SCHEMA = (
        ("Index", "index", "int32", (0, 1)),
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("SnapshotId", "snapshot_id", "SnapshotId", (0, 1)),
        ("CurrentLeader", "current_leader", "LeaderIdAndEpoch", (0, 1), None, (0, 1), 0),
        ("Size", "size", "int64", (0, 1)),
        ("Position", "position", "int64", (0, 1)),
        ("UnalignedRecords", "unaligned_records", "records", (0, 1)),
    )

    def __init__(
        self,
        index: int = 0, error_code: int = 0, snapshot_id: SnapshotId = DEFAULT_SNAPSHOT_ID,
        current_leader: LeaderIdAndEpoch = DEFAULT_LEADER_ID_AND_EPOCH, size: int = 0, position: int = 0,
        unaligned_records: Records = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.snapshot_id = snapshot_id
        self.current_leader = current_leader
        self.size = size
        self.position = position
        self.unaligned_records = unaligned_records


class TopicSnapshot(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 1)),
        ("Partitions", "partitions", "[]PartitionSnapshot", (0, 1)),
    )

    def __init__(self, name: str = "", partitions: list[PartitionSnapshot] = EMPTY) -> None:
        self.name = name
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


class FetchSnapshotResponse(Message):
    KIND = "response"
    API_KEY = 59
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "topics", "node_endpoints")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 1), None, None, None, 0, True),
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("Topics", "topics", "[]TopicSnapshot", (0, 1)),
        ("NodeEndpoints", "node_endpoints", "[]NodeEndpoint", (1, 1), None, (1, 1), 0),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, topics: list[TopicSnapshot] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
