"""ShareFetchResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Records, Struct, frozen


class LeaderIdAndEpoch(Struct):
    __slots__ = ("leader_id", "leader_epoch")
    SCHEMA = (
        ("LeaderId", "leader_id", "int32", (1, 2)),
        ("LeaderEpoch", "leader_epoch", "int32", (1, 2)),
    )

    def __init__(self, leader_id: int = 0, leader_epoch: int = 0) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


DEFAULT_LEADER_ID_AND_EPOCH = frozen(LeaderIdAndEpoch)


class AcquiredRecords(Struct):
    __slots__ = ("first_offset", "last_offset", "delivery_count")
    SCHEMA = (
        ("FirstOffset", "first_offset", "int64", (1, 2)),
        ("LastOffset", "last_offset", "int64", (1, 2)),
        ("DeliveryCount", "delivery_count", "int16", (1, 2)),
    )

    def __init__(self, first_offset: int = 0, last_offset: int = 0, delivery_count: int = 0) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_count = delivery_count


class PartitionData(Struct):
    __slots__ = (
        "partition_index", "error_code", "error_message", "acknowledge_error_code", "acknowledge_error_message",
        "current_leader", "records", "acquired_records",
    )
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (1, 2)),
        ("ErrorCode", "error_code", "int16", (1, 2)),
        ("ErrorMessage", "error_message", "string", (1, 2), (1, 2), None, None, None),
        ("AcknowledgeErrorCode", "acknowledge_error_code", "int16", (1, 2)),
        ("AcknowledgeErrorMessage", "acknowledge_error_message", "string", (1, 2), (1, 2), None, None, None),
        ("CurrentLeader", "current_leader", "LeaderIdAndEpoch", (1, 2)),
        ("Records", "records", "records", (1, 2)),
        ("AcquiredRecords", "acquired_records", "[]AcquiredRecords", (1, 2)),
    )

    def __init__(
        self,
        partition_index: int = 0, error_code: int = 0, error_message: str | None = None,
        acknowledge_error_code: int = 0, acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = DEFAULT_LEADER_ID_AND_EPOCH, records: Records = None,
        acquired_records: list[AcquiredRecords] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.acknowledge_error_code = acknowledge_error_code
        self.acknowledge_error_message = acknowledge_error_message
        self.current_leader = current_leader
        self.records = records
        self.acquired_records = [] if acquired_records is EMPTY else acquired_records


class ShareFetchableTopicResponse(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (1, 2)),
        ("Partitions", "partitions", "[]PartitionData", (1, 2)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class NodeEndpoint(Struct):
    __slots__ = ("node_id", "host", "port", "rack")
    SCHEMA = (
        ("NodeId", "node_id", "int32", (1, 2)),
        ("Host", "host", "string", (1, 2)),
        ("Port", "port", "int32", (1, 2)),
        ("Rack", "rack", "string", (1, 2), (1, 2), None, None, None),
    )

    def __init__(self, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class ShareFetchResponse(Message):
    KIND = "response"
    API_KEY = 78
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
    __slots__ = (
        "throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses",
        "node_endpoints",
    )
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 2)),
        ("ErrorCode", "error_code", "int16", (1, 2)),
        ("ErrorMessage", "error_message", "string", (1, 2), (1, 2), None, None, None),
        ("AcquisitionLockTimeoutMs", "acquisition_lock_timeout_ms", "int32", (1, 2)),
        ("Responses", "responses", "[]ShareFetchableTopicResponse", (1, 2)),
        ("NodeEndpoints", "node_endpoints", "[]NodeEndpoint", (1, 2)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0, responses: list[ShareFetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
