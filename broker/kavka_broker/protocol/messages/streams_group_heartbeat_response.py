"""StreamsGroupHeartbeatResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct, frozen


class Status(Struct):
    __slots__ = ("status_code", "status_detail")
    SCHEMA = (
        ("StatusCode", "status_code", "int8", (0, 0)),
        ("StatusDetail", "status_detail", "string", (0, 0)),
    )

    def __init__(self, status_code: int = 0, status_detail: str = "") -> None:
        self.status_code = status_code
        self.status_detail = status_detail


class TaskIds(Struct):
    __slots__ = ("subtopology_id", "partitions")
    SCHEMA = (
        ("SubtopologyId", "subtopology_id", "string", (0, 0)),
        ("Partitions", "partitions", "[]int32", (0, 0)),
    )

    def __init__(self, subtopology_id: str = "", partitions: list[int] = EMPTY) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is EMPTY else partitions


class Endpoint(Struct):
    __slots__ = ("host", "port")
    SCHEMA = (
        ("Host", "host", "string", (0, 0)),
        ("Port", "port", "uint16", (0, 0)),
    )

    def __init__(self, host: str = "", port: int = 0) -> None:
        self.host = host
        self.port = port


DEFAULT_ENDPOINT = frozen(Endpoint)


class TopicPartition(Struct):
    __slots__ = ("topic", "partitions")
    SCHEMA = (
        ("Topic", "topic", "string", (0, 0)),
        ("Partitions", "partitions", "[]int32", (0, 0)),
    )

    def __init__(self, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class EndpointToPartitions(Struct):
    __slots__ = ("user_endpoint", "active_partitions", "standby_partitions")
    SCHEMA = (
        ("UserEndpoint", "user_endpoint", "Endpoint", (0, 0)),
        ("ActivePartitions", "active_partitions", "[]TopicPartition", (0, 0)),
        ("StandbyPartitions", "standby_partitions", "[]TopicPartition", (0, 0)),
    )

    def __init__(
        self,
        user_endpoint: Endpoint = DEFAULT_ENDPOINT, active_partitions: list[TopicPartition] = EMPTY,
        standby_partitions: list[TopicPartition] = EMPTY,
    ) -> None:
        self.user_endpoint = user_endpoint
        self.active_partitions = [] if active_partitions is EMPTY else active_partitions
        self.standby_partitions = [] if standby_partitions is EMPTY else standby_partitions


class StreamsGroupHeartbeatResponse(Message):
    KIND = "response"
    API_KEY = 88
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms",
        "acceptable_recovery_lag", "task_offset_interval_ms", "status", "active_tasks", "standby_tasks",
        "warmup_tasks", "endpoint_information_epoch", "partitions_by_user_endpoint",
    )
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0), None, None, None),
        ("MemberId", "member_id", "string", (0, 0)),
        ("MemberEpoch", "member_epoch", "int32", (0, 0)),
        ("HeartbeatIntervalMs", "heartbeat_interval_ms", "int32", (0, 0)),
        ("AcceptableRecoveryLag", "acceptable_recovery_lag", "int32", (0, 0)),
        ("TaskOffsetIntervalMs", "task_offset_interval_ms", "int32", (0, 0)),
        ("Status", "status", "[]Status", (0, 0), (0, 0)),
        ("ActiveTasks", "active_tasks", "[]TaskIds", (0, 0), (0, 0), None, None, None),
        ("StandbyTasks", "standby_tasks", "[]TaskIds", (0, 0), (0, 0), None, None, None),
        ("WarmupTasks", "warmup_tasks", "[]TaskIds", (0, 0), (0, 0), None, None, None),
        ("EndpointInformationEpoch", "endpoint_information_epoch", "int32", (0, 0)),
        ("PartitionsByUserEndpoint", "partitions_by_user_endpoint", "[]EndpointToPartitions",
         (0, 0), (0, 0), None, None, None),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None, member_id: str = "",
        member_epoch: int = 0, heartbeat_interval_ms: int = 0, acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0, status: list[Status] | None = EMPTY,
        active_tasks: list[TaskIds] | None = None, standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None, endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.task_offset_interval_ms = task_offset_interval_ms
        self.status = [] if status is EMPTY else status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint
