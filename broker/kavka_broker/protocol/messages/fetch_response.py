"""FetchResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Records, Struct, frozen


class EpochEndOffset(Struct):
    __slots__ = ("epoch", "end_offset")
    SCHEMA = (
        ("Epoch", "epoch", "int32", (12, 18), None, None, None, -1),
        ("EndOffset", "end_offset", "int64", (12, 18), None, None, None, -1),
    )

    def __init__(self, epoch: int = -1, end_offset: int = -1) -> None:
        self.epoch = epoch
        self.end_offset = end_offset


DEFAULT_EPOCH_END_OFFSET = frozen(EpochEndOffset)


class LeaderIdAndEpoch(Struct):
    __slots__ = ("leader_id", "leader_epoch")
    SCHEMA = (
        ("LeaderId", "leader_id", "int32", (12, 18), None, None, None, -1),
        ("LeaderEpoch", "leader_epoch", "int32", (12, 18), None, None, None, -1),
    )

    def __init__(self, leader_id: int = -1, leader_epoch: int = -1) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


DEFAULT_LEADER_ID_AND_EPOCH = frozen(LeaderIdAndEpoch)


class SnapshotId(Struct):
    __slots__ = ("end_offset", "epoch")
    SCHEMA = (
        ("EndOffset", "end_offset", "int64", (4, 18), None, None, None, -1),
        ("Epoch", "epoch", "int32", (4, 18), None, None, None, -1),
    )

    def __init__(self, end_offset: int = -1, epoch: int = -1) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


DEFAULT_SNAPSHOT_ID = frozen(SnapshotId)


class AbortedTransaction(Struct):
    __slots__ = ("producer_id", "first_offset")
    SCHEMA = (
        ("ProducerId", "producer_id", "int64", (4, 18)),
        ("FirstOffset", "first_offset", "int64", (4, 18)),
    )

    def __init__(self, producer_id: int = 0, first_offset: int = 0) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset


class PartitionData(Struct):
    __slots__ = (
        "partition_index", "error_code", "high_watermark", "last_stable_offset", "log_start_offset",
        "diverging_epoch", "current_leader", "snapshot_id", "aborted_transactions", "preferred_read_replica",
        "records",
    )
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (4, 18)),
        ("ErrorCode", "error_code", "int16", (4, 18)),
        ("HighWatermark", "high_watermark", "int64", (4, 18)),
        ("LastStableOffset", "last_stable_offset", "int64", (4, 18), None, None, None, -1, True),
        ("LogStartOffset", "log_start_offset", "int64", (5, 18), None, None, None, -1, True),
        ("DivergingEpoch", "diverging_epoch", "EpochEndOffset", (12, 18), None, (12, 18), 0),
        ("CurrentLeader", "current_leader", "LeaderIdAndEpoch", (12, 18), None, (12, 18), 1),
        ("SnapshotId", "snapshot_id", "SnapshotId", (12, 18), None, (12, 18), 2),
        ("AbortedTransactions", "aborted_transactions", "[]AbortedTransaction",
         (4, 18), (4, 18), None, None, b"", True),
        ("PreferredReadReplica", "preferred_read_replica", "int32", (11, 18), None, None, None, -1),
        ("Records", "records", "records", (4, 18), (4, 18)),
    )

    def __init__(
        self,
        partition_index: int = 0, error_code: int = 0, high_watermark: int = 0, last_stable_offset: int = -1,
        log_start_offset: int = -1, diverging_epoch: EpochEndOffset = DEFAULT_EPOCH_END_OFFSET,
        current_leader: LeaderIdAndEpoch = DEFAULT_LEADER_ID_AND_EPOCH,
        snapshot_id: SnapshotId = DEFAULT_SNAPSHOT_ID,
        aborted_transactions: list[AbortedTransaction] | None = EMPTY, preferred_read_replica: int = -1,
        records: Records = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.snapshot_id = snapshot_id
        self.aborted_transactions = [] if aborted_transactions is EMPTY else aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records


class FetchableTopicResponse(Struct):
    __slots__ = ("topic", "topic_id", "partitions")
    SCHEMA = (
        ("Topic", "topic", "string", (4, 12), None, None, None, "", True),
        ("TopicId", "topic_id", "uuid", (13, 18), None, None, None, b"", True),
        ("Partitions", "partitions", "[]PartitionData", (4, 18)),
    )

    def __init__(self, topic: str = "", topic_id: bytes = ZERO, partitions: list[PartitionData] = EMPTY) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class NodeEndpoint(Struct):
    __slots__ = ("node_id", "host", "port", "rack")
    SCHEMA = (
        ("NodeId", "node_id", "int32", (16, 18)),
        ("Host", "host", "string", (16, 18)),
        ("Port", "port", "int32", (16, 18)),
        ("Rack", "rack", "string", (16, 18), (16, 18), None, None, None),
    )

    def __init__(self, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class FetchResponse(Message):
    KIND = "response"
    API_KEY = 1
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (4, 18), None, None, None, 0, True),
        ("ErrorCode", "error_code", "int16", (7, 18), None, None, None, 0, True),
        ("SessionId", "session_id", "int32", (7, 18)),
        ("Responses", "responses", "[]FetchableTopicResponse", (4, 18)),
        ("NodeEndpoints", "node_endpoints", "[]NodeEndpoint", (16, 18), None, (16, 18), 0),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, session_id: int = 0,
        responses: list[FetchableTopicResponse] = EMPTY, node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
