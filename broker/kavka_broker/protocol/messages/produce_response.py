"""ProduceResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct, frozen


class BatchIndexAndErrorMessage(Struct):
    __slots__ = ("batch_index", "batch_index_error_message")
    SCHEMA = (
        ("BatchIndex", "batch_index", "int32", (8, 13)),
        ("BatchIndexErrorMessage", "batch_index_error_message", "string", (8, 13), (8, 13), None, None, None),
    )

    def __init__(self, batch_index: int = 0, batch_index_error_message: str | None = None) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message


class LeaderIdAndEpoch(Struct):
    __slots__ = ("leader_id", "leader_epoch")
    SCHEMA = (
        ("LeaderId", "leader_id", "int32", (10, 13), None, None, None, -1),
        ("LeaderEpoch", "leader_epoch", "int32", (10, 13), None, None, None, -1),
    )

    def __init__(self, leader_id: int = -1, leader_epoch: int = -1) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


DEFAULT_LEADER_ID_AND_EPOCH = frozen(LeaderIdAndEpoch)


class PartitionProduceResponse(Struct):
    __slots__ = (
        "index", "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "record_errors",
        "error_message", "current_leader",
    )
    SCHEMA = (
        ("Index", "index", "int32", (3, 13)),
        ("ErrorCode", "error_code", "int16", (3, 13)),
        ("BaseOffset", "base_offset", "int64", (3, 13)),
        ("LogAppendTimeMs", "log_append_time_ms", "int64", (3, 13), None, None, None, -1, True),
        ("LogStartOffset", "log_start_offset", "int64", (5, 13), None, None, None, -1, True),
        ("RecordErrors", "record_errors", "[]BatchIndexAndErrorMessage", (8, 13), None, None, None, b"", True),
        ("ErrorMessage", "error_message", "string", (8, 13), (8, 13), None, None, None, True),
        ("CurrentLeader", "current_leader", "LeaderIdAndEpoch", (10, 13), None, (10, 13), 0),
    )

    def __init__(
        self,
        index: int = 0, error_code: int = 0, base_offset: int = 0, log_append_time_ms: int = -1,
        log_start_offset: int = -1, record_errors: list[BatchIndexAndErrorMessage] = EMPTY,
        error_message: str | None = None, current_leader: LeaderIdAndEpoch = DEFAULT_LEADER_ID_AND_EPOCH,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = [] if record_errors is EMPTY else record_errors
        self.error_message = error_message
        self.current_leader = current_leader


class TopicProduceResponse(Struct):
    __slots__ = ("name", "topic_id", "partition_responses")
    SCHEMA = (
        ("Name", "name", "string", (3, 12), None, None, None, "", True),
        ("TopicId", "topic_id", "uuid", (13, 13), None, None, None, b"", True),
        ("PartitionResponses", "partition_responses", "[]PartitionProduceResponse", (3, 13)),
    )

    def __init__(
        self,
        name: str = "", topic_id: bytes = ZERO, partition_responses: list[PartitionProduceResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = [] if partition_responses is EMPTY else partition_responses


class NodeEndpoint(Struct):
    __slots__ = ("node_id", "host", "port", "rack")
    SCHEMA = (
        ("NodeId", "node_id", "int32", (10, 13)),
        ("Host", "host", "string", (10, 13)),
        ("Port", "port", "int32", (10, 13)),
        ("Rack", "rack", "string", (10, 13), (10, 13), None, None, None),
    )

    def __init__(self, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class ProduceResponse(Message):
    KIND = "response"
    API_KEY = 0
    VERSIONS = (3, 13)
    FLEXIBLE_FROM = 9
    __slots__ = ("responses", "throttle_time_ms", "node_endpoints")
    SCHEMA = (
        ("Responses", "responses", "[]TopicProduceResponse", (3, 13)),
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (3, 13), None, None, None, 0, True),
        ("NodeEndpoints", "node_endpoints", "[]NodeEndpoint", (10, 13), None, (10, 13), 0),
    )

    def __init__(
        self,
        responses: list[TopicProduceResponse] = EMPTY, throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.responses = [] if responses is EMPTY else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
