"""ListPartitionReassignmentsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class OngoingPartitionReassignment(Struct):
    __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 0)),
        ("Replicas", "replicas", "[]int32", (0, 0)),
        ("AddingReplicas", "adding_replicas", "[]int32", (0, 0)),
        ("RemovingReplicas", "removing_replicas", "[]int32", (0, 0)),
    )

    def __init__(
        self,
        partition_index: int = 0, replicas: list[int] = EMPTY, adding_replicas: list[int] = EMPTY,
        removing_replicas: list[int] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = [] if replicas is EMPTY else replicas
        self.adding_replicas = [] if adding_replicas is EMPTY else adding_replicas
        self.removing_replicas = [] if removing_replicas is EMPTY else removing_replicas


class OngoingTopicReassignment(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Partitions", "partitions", "[]OngoingPartitionReassignment", (0, 0)),
    )

    def __init__(self, name: str = "", partitions: list[OngoingPartitionReassignment] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class ListPartitionReassignmentsResponse(Message):
    KIND = "response"
    API_KEY = 46
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0)),
        ("Topics", "topics", "[]OngoingTopicReassignment", (0, 0)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "",
        topics: list[OngoingTopicReassignment] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is EMPTY else topics
