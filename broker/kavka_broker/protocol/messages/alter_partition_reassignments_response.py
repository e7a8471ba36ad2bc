"""AlterPartitionReassignmentsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ReassignablePartitionResponse(Struct):
    __slots__ = ("partition_index", "error_code", "error_message")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 1)),
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1)),
    )

    def __init__(self, partition_index: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class ReassignableTopicResponse(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 1)),
        ("Partitions", "partitions", "[]ReassignablePartitionResponse", (0, 1)),
    )

    def __init__(self, name: str = "", partitions: list[ReassignablePartitionResponse] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterPartitionReassignmentsResponse(Message):
    KIND = "response"
    API_KEY = 45
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "allow_replication_factor_change", "error_code", "error_message", "responses")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 1)),
        ("AllowReplicationFactorChange", "allow_replication_factor_change", "bool",
         (1, 1), None, None, None, True, True),
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1)),
        ("Responses", "responses", "[]ReassignableTopicResponse", (0, 1)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, allow_replication_factor_change: bool = True, error_code: int = 0,
        error_message: str | None = "", responses: list[ReassignableTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY else responses
